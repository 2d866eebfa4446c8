// The mailboxes that contain a message.

/** @import { Copy, ShownMessage } from '../../types.js' */

import * as paths from '../../lib/paths.js';
import { h } from '../../lib/dom.js';
import { count } from '../../lib/format.js';
import { visible } from '../../lib/visible.js';
import { copies } from './envelope.js';
import { withShowMore } from './show-more.js';

const FIRST_COPIES = 3;
const MORE_COPIES = 200;

/** The maximum number of recipients of a copy that are named. */
const MAX_RECIPIENTS = 5;

/**
 * Returns a sentence such as “Delivered to james, bob”, with links. The mailbox that is shown comes first.
 * @param {ShownMessage} message
 */
export function mailboxes(message) {
  const { own, others } = copies(message);
  if (!own) return null;
  const wrap = (/** @type {HTMLButtonElement} */ button) => h('li', {}, button);
  const label = (/** @type {number} */ rest) => `and ${count(rest)} more`;
  const list = h('ul', { 'aria-label': 'Mailboxes' });
  list.append(...withShowMore([own, ...others], (copy) => h('li', {}, mailbox(copy)), { first: FIRST_COPIES, step: MORE_COPIES, wrap, label, kind: 'more' }));
  return h('div', { class: 'message-mailboxes' }, h('span', {}, 'Delivered to'), list);
}

/** @param {Copy} copy */
function mailbox({ mailbox, id, recipients = [] }) {
  const title = recipients.length > 0 ? `Recipient: ${recipients.slice(0, MAX_RECIPIENTS).map(visible).join(', ')}` : null;
  return h('a', { href: paths.mailbox(mailbox, id), title }, h('bdi', {}, visible(mailbox)));
}
