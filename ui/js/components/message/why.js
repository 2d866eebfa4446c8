// Why a message is in a mailbox, and the other mailboxes that contain it.

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
 * Returns a sentence such as “In mailbox james because of the recipient james+x@example.org”.
 * @param {ShownMessage} message
 */
export function why(message) {
  const { own, others } = copies(message);
  if (!own) return null;
  const recipients = (own.recipients ?? []).slice(0, MAX_RECIPIENTS);
  const because = recipients.flatMap((recipient, at) => [at > 0 && ', ', h('bdi', { class: 'why-recipient' }, visible(recipient))]);
  return h('div', { class: 'message-why' },
    h('span', {}, 'In mailbox ', mailbox(own), recipients.length > 0 && ` because of the recipient${recipients.length > 1 ? 's' : ''} `, ...because),
    others.length > 0 && also(others));
}

/** @param {Copy[]} others */
function also(others) {
  const wrap = (/** @type {HTMLButtonElement} */ button) => h('li', {}, button);
  const label = (/** @type {number} */ rest) => `and ${count(rest)} more`;
  const list = h('ul', { class: 'why-copies', 'aria-label': 'Also in the mailboxes' });
  list.append(...withShowMore(others, (copy) => h('li', {}, mailbox(copy)), { first: FIRST_COPIES, step: MORE_COPIES, wrap, label, kind: 'more' }));
  return h('span', { class: 'why-also' }, h('span', { 'aria-hidden': 'true' }, 'Also in'), list);
}

/** @param {Copy} copy */
function mailbox({ mailbox, id, recipients = [] }) {
  const title = recipients.length > 0 ? `For ${recipients.slice(0, MAX_RECIPIENTS).map(visible).join(', ')}` : null;
  return h('a', { href: paths.mailbox(mailbox, id), title }, h('bdi', {}, visible(mailbox)));
}
