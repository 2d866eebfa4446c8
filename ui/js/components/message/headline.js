// The headline of a message: subject, sender, recipients, time and size.

/** @import { Message } from '../../types.js' */

import { h } from '../../lib/dom.js';
import { address, count, exact, size } from '../../lib/format.js';
import { visible } from '../../lib/visible.js';
import { withShowMore } from './show-more.js';

/** Exact, but short enough for a phone; the tooltip has the long form. */
const MOMENT = new Intl.DateTimeFormat(undefined, { weekday: 'short', day: 'numeric', month: 'short', year: 'numeric', hour: '2-digit', minute: '2-digit', second: '2-digit' });

/** Longer texts are truncated, in characters. */
const MAX_LENGTH = 200;

const FIRST_RECIPIENTS = 3;
const MORE_RECIPIENTS = 500;

/** @param {Message} message */
export function headline(message) {
  const received = h('time', { datetime: message.date, title: `Received on ${exact(message['posix-millis'])}` }, MOMENT.format(message['posix-millis']));
  return h('header', { class: 'message-headline' },
    subject(message.subject),
    h('span', { class: 'message-initial', 'aria-hidden': 'true' }, initial(message.from)),
    h('div', { class: 'message-from' }, h('span', { class: 'hidden' }, 'From '), person(message.from, '(no sender)')),
    recipients(message.to),
    h('p', { class: 'message-facts' }, received, h('span', { class: 'number' }, size(message.size))));
}

/** @param {string} text */
function subject(text) {
  const shown = visible(text).trim();
  const title = h('h2', { class: 'message-subject', dir: 'auto', tabindex: -1 }, shown || h('em', { class: 'soft' }, '(no subject)'));
  return clamped(title, shown, 'subject');
}

/** @param {string[]} to */
function recipients(to) {
  const list = h('ul', { class: 'message-to', 'aria-label': 'To' });
  const draw = (/** @type {string} */ one) => h('li', {}, person(one, '(no recipient)'));
  const wrap = (/** @type {HTMLButtonElement} */ button) => h('li', {}, button);
  const label = (/** @type {number} */ rest) => `and ${count(rest)} more`;
  list.append(...withShowMore(to.length > 0 ? to : [''], draw, { first: FIRST_RECIPIENTS, step: MORE_RECIPIENTS, wrap, label, kind: 'more' }));
  return list;
}

/**
 * Formats a name and an address. Each is isolated, so that text direction controls in one do not affect the other.
 * @param {string} text
 * @param {string} placeholder
 */
function person(text, placeholder) {
  const known = address(text);
  const [name, at] = [visible(known.name).trim(), visible(known.address).trim()];
  if (!name) return h('em', { class: 'soft' }, placeholder);
  const whole = h('span', { class: 'person' }, h('bdi', { class: 'person-name' }, name), name !== at && h('span', { class: 'person-address' }, ' <', h('bdi', {}, at), '>'));
  return clamped(whole, text, 'address');
}

/**
 * Truncates a long element to two lines, with a button that shows the rest.
 * @param {HTMLElement} whole
 * @param {string} text The text of the element.
 * @param {string} name
 */
function clamped(whole, text, name) {
  if (text.length <= MAX_LENGTH) return whole;
  whole.classList.add('clamped');
  const label = () => (whole.classList.contains('clamped') ? `Show the whole ${name}` : 'Show less');
  const button = h('button', { class: 'more', type: 'button', 'aria-expanded': 'false', onclick: () => {
    button.setAttribute('aria-expanded', String(!whole.classList.toggle('clamped')));
    button.textContent = label();
  } }, label());
  return h('div', { class: 'message-long' }, whole, button);
}

/** @param {string} from */
function initial(from) {
  return /[\p{L}\p{N}]/u.exec(address(from).name)?.[0].toUpperCase() ?? '?';
}
