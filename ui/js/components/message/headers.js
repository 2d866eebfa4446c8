// <message-headers>: all header lines of a message, in the order of the mail, decoded, with what was sent on demand.

/** @import { Header, Message } from '../../types.js' */

import { copy } from '../../lib/clipboard.js';
import { fill, h } from '../../lib/dom.js';
import { count, plural, size } from '../../lib/format.js';
import { icon } from '../../lib/icons.js';
import { visible } from '../../lib/visible.js';
import { scroller } from './controls.js';
import { inSteps } from './steps.js';

const ROWS = 200;

/** Of a longer value the beginning is shown first. */
const LONG_VALUE = 2_000;

export class MessageHeaders extends HTMLElement {
  #headers;
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
    filter.addEventListener('keydown', (event) => event.key === 'Escape' && filter.value === '' && filter.blur());
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
    const wanted = filter.trim().toLowerCase();
    const found = this.#headers.filter(({ name, value, decoded }) => `${name}: ${decoded ?? ''} ${value}`.toLowerCase().includes(wanted));
    const more = (/** @type {number} */ rest, /** @type {() => void} */ show) =>
      h('tr', {}, h('td', { colspan: 2 }, h('button', { class: 'button small', type: 'button', onclick: show }, `Show more (${count(rest)} left)`)));
    const none = h('tr', {}, h('td', { class: 'soft', colspan: 2 }, wanted ? 'No header says that.' : 'This mail has no headers.'));
    fill(this.#rows, found.length > 0 ? inSteps(found, row, more, { first: ROWS }) : none);
    this.#found.textContent = wanted ? `${count(found.length)} of ${count(this.#headers.length)}` : plural(this.#headers.length, 'header');
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

/** @param {string} text */
function shortened(text) {
  const shown = visible(text);
  if (shown.length <= LONG_VALUE) return h('bdi', {}, shown);
  const all = h('button', { class: 'more', type: 'button', onclick: () => {
    const whole = h('bdi', { tabindex: -1 }, shown);
    part.replaceWith(whole);
    whole.focus();
  } }, `… show all (${size(text.length)})`);
  const part = h('span', {}, h('bdi', {}, shown.slice(0, LONG_VALUE)), ' ', all);
  return part;
}

customElements.define('message-headers', MessageHeaders);
