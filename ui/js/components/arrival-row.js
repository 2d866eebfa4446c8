// A row of the monitor: time, mailbox, sender, subject and size of a message. Rows are reused for other arrivals, so their
// elements are created once, and the focus stays in a row that is redrawn.

/** @import { Arrival } from '../lib/arrivals.js' */
/** @import { Summary } from '../types.js' */

import * as paths from '../lib/paths.js';
import { fill, h, set } from '../lib/dom.js';
import { address, clock, exact, size } from '../lib/format.js';
import { visible } from '../lib/visible.js';

/** How long a row is highlighted. */
const NEW_MS = 1_500;

/** @type {WeakMap<HTMLElement, ReturnType<typeof parts>>} */
const rowParts = new WeakMap();

/**
 * @param {HTMLElement} row
 * @param {Arrival} arrival
 */
export function drawArrival(row, { message, deleted, receivedAt }) {
  row.classList.add('arrival');
  row.classList.toggle('gap', message === null);
  row.classList.toggle('gone', deleted);
  row.classList.toggle('new', performance.now() - receivedAt < NEW_MS);
  if (message) return drawMessage(rowParts.get(row) ?? build(row), message, deleted);
  rowParts.delete(row);
  fill(row, h('span', {}, 'The connection was lost here. Some messages may be missing.'));
}

/**
 * @param {ReturnType<typeof parts>} parts
 * @param {Summary} message
 * @param {boolean} deleted
 */
function drawMessage({ time, mailboxLink, sender, link, sizeCell }, message, deleted) {
  const { mailbox, id, 'posix-millis': millis } = message;
  const [name, from, subject] = [mailbox, message.from, message.subject.trim()].map(visible);
  fill(time, clock(millis));
  time.title = exact(millis);
  set(mailboxLink, { href: paths.mailbox(mailbox), title: name });
  fill(mailboxLink, h('bdi', {}, name));
  sender.title = from;
  fill(sender, h('bdi', {}, address(from).name || '(no sender)'));
  // A deleted message keeps its link element, because it can have the focus, but without a target.
  set(link, { tabindex: deleted ? -1 : null, href: deleted ? null : paths.mailbox(mailbox, id), title: subject });
  fill(link, h(deleted ? 'del' : 'bdi', { dir: 'auto' }, subject || '(no subject)'), deleted && h('span', { class: 'hidden' }, ' (deleted)'));
  fill(sizeCell, size(message.size));
}

/** @param {HTMLElement} row */
function build(row) {
  const all = parts();
  fill(row, ...Object.values(all));
  rowParts.set(row, all);
  return all;
}

function parts() {
  return {
    time: h('time', { class: 'arrival-time soft number' }),
    mailboxLink: h('a', { class: 'arrival-mailbox truncate' }),
    sender: h('span', { class: 'arrival-from truncate' }),
    link: h('a', { class: 'arrival-link truncate' }),
    sizeCell: h('span', { class: 'arrival-size soft number' }),
  };
}
