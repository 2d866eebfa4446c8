// The one-time code of a message, ready to be copied: what most who open such a mail are looking for.

/** @import { Code } from '../../types.js' */

import { copy } from '../../lib/clipboard.js';
import { h } from '../../lib/dom.js';
import { icon } from '../../lib/icons.js';
import { visible } from '../../lib/visible.js';

/** What is less likely is no code, as a rule. */
const LIKELY = 0.5;

/**
 * The first of them, if it is likely to be one.
 * @param {Code[]} codes The likeliest first.
 * @returns {Code | null}
 */
export function likeliest(codes) {
  const first = codes.at(0);
  return first && first.score >= LIKELY ? first : null;
}

/** @param {Code} code */
export function code({ code, before, after }) {
  const shown = visible(code);
  return h('p', { class: 'message-code' },
    h('span', { class: 'soft' }, 'Code'),
    h('bdi', { class: 'message-code-value mono' }, shown),
    h('button', { class: 'button small', type: 'button', 'aria-label': `Copy the code ${shown}`, onclick: () => copy(code, 'Code copied') }, icon('copy'), 'Copy'),
    h('span', { class: 'message-code-around soft cut', 'aria-hidden': 'true', dir: 'auto' }, `… ${visible(before)} `, h('b', {}, shown), ` ${visible(after)} …`));
}
