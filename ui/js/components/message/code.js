// The one-time code of a message and the origin that it is for, with a copy button. The origin is not a link.

/** @import { Code } from '../../types.js' */

import { copy } from '../../lib/clipboard.js';
import { h } from '../../lib/dom.js';
import { icon } from '../../lib/icons.js';
import { visible } from '../../lib/visible.js';

/** @param {Code} code */
export function code({ code, before, after, where, origin }) {
  const shown = visible(code);
  const title = where === 'header' ? `OTP-Token: ${shown} ${visible(origin ?? '')}` : `… ${visible(before)} ${shown} ${visible(after)} …`;
  return h('p', { class: 'message-helper message-code', title },
    h('span', { class: 'soft' }, 'Code'),
    h('bdi', { class: 'message-code-value mono' }, shown),
    origin !== undefined && h('span', { class: 'message-code-origin soft truncate' }, 'for ', h('bdi', {}, visible(origin))),
    h('button', { class: 'button plain small', type: 'button', 'aria-label': `Copy the code ${shown}`, onclick: () => copy(code, 'Code copied') }, icon('copy'), 'Copy'));
}
