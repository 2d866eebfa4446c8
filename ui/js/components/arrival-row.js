// A row of the monitor: when a message arrived, where, from whom and about what. Rows are used again for other arrivals,
// so what they are made of is made once, and the focus stays in a row that is only drawn again.

/** @import { Arrival } from '../lib/arrivals.js' */
/** @import { Summary } from '../types.js' */

import * as paths from '../lib/paths.js';
import { fill, h, set } from '../lib/dom.js';
import { address, clock, exact, size } from '../lib/format.js';
import { visible } from '../lib/visible.js';

/** How long a row looks new. */
const NEW = 1_500;

/** @type {WeakMap<HTMLElement, ReturnType<typeof parts>>} */
const made = new WeakMap();

/**
 * @param {HTMLElement} row
 * @param {Arrival} arrival
 */
export function drawArrival(row, { message, deleted, told }) {
  row.classList.add('arrival');
  row.classList.toggle('gap', message === null);
  row.classList.toggle('gone', deleted);
  row.classList.toggle('new', performance.now() - told < NEW);
  if (message) return drawMessage(made.get(row) ?? build(row), message, deleted);
  made.delete(row);
  fill(row, h('span', {}, 'There was no connection here; some mail may be missing.'));
}

/**
 * @param {ReturnType<typeof parts>} parts
 * @param {Summary} message
 * @param {boolean} deleted
 */
function drawMessage({ time, box, sender, link, bulk }, message, deleted) {
  const { mailbox, id, 'posix-millis': millis } = message;
  const [name, from, subject] = [mailbox, message.from, message.subject.trim()].map(visible);
  fill(time, clock(millis));
  time.title = exact(millis);
  set(box, { href: paths.mailbox(mailbox), title: name });
  fill(box, h('bdi', {}, name));
  sender.title = from;
  fill(sender, h('bdi', {}, address(from).name || '(no sender)'));
  // It stays where the focus may be, but leads nowhere.
  set(link, { tabindex: deleted ? -1 : null, href: deleted ? null : paths.mailbox(mailbox, id), title: subject });
  fill(link, h(deleted ? 'del' : 'bdi', { dir: 'auto' }, subject || '(no subject)'), deleted && h('span', { class: 'hidden' }, ' (deleted)'));
  fill(bulk, size(message.size));
}

/** @param {HTMLElement} row */
function build(row) {
  const all = parts();
  fill(row, ...Object.values(all));
  made.set(row, all);
  return all;
}

function parts() {
  return {
    time: h('time', { class: 'arrival-time soft number' }),
    box: h('a', { class: 'arrival-mailbox cut' }),
    sender: h('span', { class: 'arrival-from cut' }),
    link: h('a', { class: 'arrival-link cut' }),
    bulk: h('span', { class: 'arrival-size soft number' }),
  };
}
