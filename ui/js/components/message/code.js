// The one-time code of a message, with a copy button.

/** @import { Code } from '../../types.js' */

import { copy } from '../../lib/clipboard.js';
import { h } from '../../lib/dom.js';
import { icon } from '../../lib/icons.js';
import { visible } from '../../lib/visible.js';

/** @param {Code} code */
export function code({ code, before, after }) {
  const shown = visible(code);
  return h('p', { class: 'message-helper message-code', title: `… ${visible(before)} ${shown} ${visible(after)} …` },
    h('span', { class: 'soft' }, 'Code'),
    h('bdi', { class: 'message-code-value mono' }, shown),
    h('button', { class: 'button plain small', type: 'button', 'aria-label': `Copy the code ${shown}`, onclick: () => copy(code, 'Code copied') }, icon('copy'), 'Copy'));
}
