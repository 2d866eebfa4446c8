// <message-headers>: all header lines of a message, in the order of the mail, decoded, with what was sent on demand.

/** @import { Header, Message } from '../../types.js' */

import { copy } from '../../lib/clipboard.js';
import { fill, h } from '../../lib/dom.js';
import { fold, matcher } from '../../lib/filter.js';
import { count, plural, size } from '../../lib/format.js';
import { icon } from '../../lib/icons.js';
import { visible } from '../../lib/visible.js';
import { scroller } from './controls.js';
import { acrossTable, inSteps } from './steps.js';

const ROWS = 100;

/** Of a longer value the beginning is shown first, and more of it at each step. */
const LONG_VALUE = 2_000;
const MORE_VALUE = 100_000;

export class MessageHeaders extends HTMLElement {
  #headers;
  /** The headers in the form in which they are compared, as soon as somebody filters. @type {string[]} */
  #folded = [];
  #rows = h('tbody');
  #found = h('span', { class: 'soft panel-fact', role: 'status' });

  /** @param {Message} message */
  constructor(message) {
    super();
    this.#headers = message.headers;
  }

  connectedCallback() {
    if (this.firstChild) return;
    const filter = h('input', { class: 'field filter', type: 'search', placeholder: 'Filter headers', 'aria-label': 'Filter headers', autocomplete: 'off', spellcheck: 'false' });
    filter.addEventListener('input', () => this.#draw(filter.value));
    filter.addEventListener('keydown', (event) => event.key === 'Escape' && !event.isComposing && filter.value === '' && filter.blur());
    const all = () => this.#headers.map(({ name, value }) => `${name}: ${value}`).join('\n');
    const bar = h('div', { class: 'panel-bar' }, filter, this.#found, h('span', { class: 'spread' }),
      h('button', { class: 'button small', type: 'button', onclick: () => copy(all(), 'Headers copied') }, icon('copy'), 'Copy all'));
    const body = scroller('Headers', 'message-headers');
    const titles = h('thead', { class: 'hidden' }, h('tr', {}, h('th', { scope: 'col' }, 'Name'), h('th', { scope: 'col' }, 'Value')));
    fill(body, h('table', {}, h('colgroup', {}, h('col', { class: 'header-name' }), h('col')), titles, this.#rows));
    this.#draw('');
    fill(this, bar, body);
  }

  /** @param {string} filter */
  #draw(filter) {
    const fits = matcher(filter);
    const folded = (/** @type {Header} */ { name, value, decoded = '' }, /** @type {number} */ at) => (this.#folded[at] ??= fold(`${name}: ${decoded} ${value}`));
    const found = fits ? this.#headers.filter((header, at) => fits(folded(header, at))) : this.#headers;
    const none = h('tr', {}, h('td', { class: 'soft', colspan: 2 }, fits ? 'No header says that.' : 'This mail has no headers.'));
    fill(this.#rows, found.length > 0 ? inSteps(found, row, { first: ROWS, place: acrossTable(2) }) : none);
    this.#found.textContent = fits ? `${count(found.length)} of ${count(this.#headers.length)}` : plural(this.#headers.length, 'header');
  }
}

/** @param {Header} header */
function row({ name, value, decoded }) {
  const cell = h('td', {}, shortened(decoded ?? value));
  if (decoded !== undefined) {
    const raw = h('div', { class: 'header-raw mono', hidden: true }, shortened(value));
    const button = h('button', { class: 'more', type: 'button', 'aria-expanded': 'false', onclick: () => {
      raw.hidden = !raw.hidden;
      button.setAttribute('aria-expanded', String(!raw.hidden));
    } }, 'As sent');
    cell.append(' ', button, raw);
  }
  return h('tr', {}, h('th', { scope: 'row' }, h('bdi', {}, visible(name))), cell);
}

/**
 * The beginning of a text, and a button for more of it. A mail may have millions of characters in one header.
 * @param {string} text
 */
function shortened(text) {
  const words = h('bdi', { tabindex: -1 });
  const button = h('button', { class: 'more', type: 'button', onclick: () => {
    show(shown + MORE_VALUE);
    words.focus({ preventScroll: true });
  } });
  let shown = 0;
  const show = (/** @type {number} */ length) => {
    shown = length;
    words.textContent = visible(text.slice(0, shown));
    const rest = text.length - shown;
    button.hidden = rest <= 0;
    button.textContent = `… show more (${size(rest)} left)`;
  };
  show(LONG_VALUE);
  return text.length > LONG_VALUE ? h('span', {}, words, ' ', button) : words;
}

customElements.define('message-headers', MessageHeaders);
