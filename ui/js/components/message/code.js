// The one-time code of a message, with a copy button.

/** @import { Code } from '../../types.js' */

import { copy } from '../../lib/clipboard.js';
import { h } from '../../lib/dom.js';
import { icon } from '../../lib/icons.js';
import { visible } from '../../lib/visible.js';

/** A possible code with a lower score is usually not a code. */
const MIN_SCORE = 0.5;

/**
 * Returns the first code if its score is high enough.
 * @param {Code[]} codes The most likely first.
 * @returns {Code | null}
 */
export function mostLikely(codes) {
  const first = codes.at(0);
  return first && first.score >= MIN_SCORE ? first : null;
}

/** @param {Code} code */
export function code({ code, before, after }) {
  const shown = visible(code);
  return h('p', { class: 'message-helper message-code' },
    h('span', { class: 'soft' }, 'Code'),
    h('bdi', { class: 'message-code-value mono' }, shown),
    h('button', { class: 'button small', type: 'button', 'aria-label': `Copy the code ${shown}`, onclick: () => copy(code, 'Code copied') }, icon('copy'), 'Copy'),
    h('span', { class: 'message-code-around soft truncate', 'aria-hidden': 'true', dir: 'auto' }, `… ${visible(before)} `, h('b', {}, shown), ` ${visible(after)} …`));
}
