// <message-headers>: all header fields of a message in their order, decoded; the raw value can be shown.

/** @import { Header, Message } from '../../types.js' */

import { copy } from '../../lib/clipboard.js';
import { fill, h } from '../../lib/dom.js';
import { fold, matcher } from '../../lib/filter.js';
import { count, plural, size } from '../../lib/format.js';
import { icon } from '../../lib/icons.js';
import { visible } from '../../lib/visible.js';
import { scroller } from './controls.js';
import { tableRow, withShowMore } from './show-more.js';

const FIRST_ROWS = 100;

/** Longer values are shown in steps, in characters. */
const FIRST_CHARACTERS = 2_000;
const MORE_CHARACTERS = 100_000;

export class MessageHeaders extends HTMLElement {
  #headers;
  /** The folded headers, computed when the user filters. @type {string[]} */
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
    const matches = matcher(filter);
    const folded = (/** @type {Header} */ { name, value, decoded = '' }, /** @type {number} */ at) => (this.#folded[at] ??= fold(`${name}: ${decoded} ${value}`));
    const found = matches ? this.#headers.filter((header, at) => matches(folded(header, at))) : this.#headers;
    const none = h('tr', {}, h('td', { class: 'soft', colspan: 2 }, matches ? 'No header matches the filter.' : 'This message has no headers.'));
    fill(this.#rows, found.length > 0 ? withShowMore(found, row, { first: FIRST_ROWS, wrap: tableRow(2) }) : none);
    this.#found.textContent = matches ? `${count(found.length)} of ${count(this.#headers.length)}` : plural(this.#headers.length, 'header');
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
    } }, 'Show raw value');
    cell.append(' ', button, raw);
  }
  return h('tr', {}, h('th', { scope: 'row' }, h('bdi', {}, visible(name))), cell);
}

/**
 * Returns the start of a text and a button for more of it. A header can have millions of characters.
 * @param {string} text
 */
function shortened(text) {
  const words = h('bdi', { tabindex: -1 });
  const button = h('button', { class: 'more', type: 'button', onclick: () => {
    show(shown + MORE_CHARACTERS);
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
  show(FIRST_CHARACTERS);
  return text.length > FIRST_CHARACTERS ? h('span', {}, words, ' ', button) : words;
}

customElements.define('message-headers', MessageHeaders);
