// A section of the sidebar: a heading, a list of links with counts, and a filter if there are many. One link of a section is reachable
// by Tab; arrow keys move between them. A row can have a menu.

/** @import { MenuItem } from './menu-button.js' */

import { h, set } from '../lib/dom.js';
import { count } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { visible } from '../lib/visible.js';
import { menuButton } from './menu-button.js';

/** The filter is shown for this number of rows and more. */
const MIN_FOR_FILTER = 8;

/**
 * @typedef {object} Item
 * @property {string} key
 * @property {string} label
 * @property {string} [parent] The label of the row that this one is indented below. Screen readers read it before the label.
 * @property {string} href
 * @property {string} title
 * @property {number} count Shown if it is not 0.
 * @property {string} [countWords] What the count means, for screen readers.
 * @property {boolean} [isUnread]
 * @property {boolean} isCurrent
 */

/** @typedef {{ item: HTMLLIElement, link: HTMLAnchorElement, button: HTMLButtonElement | null, update(item: Item): void }} Row */

export class SidebarSection {
  /** @type {Map<string, Row>} */
  #rows = new Map();
  #mark;
  #menu;
  #emptied;
  #list;

  element;
  filter;

  /**
   * @param {{ name: string, heading: string, mark?: (key: string) => Element, menu?: (key: string) => MenuItem[], emptied?: () => void, typed?: () => void }} options
   *   `name` is the end of the class names, `mark` creates the icon of a row, `emptied` is called when the last row was removed while it
   *   had the focus, `typed` when the text of the filter has changed; without it there is no filter.
   */
  constructor({ name, heading, mark, menu, emptied, typed }) {
    this.#mark = mark;
    this.#menu = menu;
    this.#emptied = emptied;
    const id = `sidebar-${name}`;
    this.filter = h('input', { class: 'field', type: 'search', placeholder: `Filter ${name}`, 'aria-label': `Filter ${name}`, autocomplete: 'off', autocapitalize: 'none', spellcheck: 'false', hidden: true, oninput: () => typed?.() });
    this.#list = h('ul', { class: id, 'aria-labelledby': id });
    this.#list.addEventListener('keydown', (event) => this.#pressed(event));
    this.element = h('section', { class: `sidebar-section ${name}` }, h('h2', { class: 'sidebar-heading', id }, heading), typed && this.filter, this.#list);
  }

  /** True while the pointer or the focus is in the list, so that its rows should not move. */
  get isUsed() {
    return this.#list.matches(':hover, :focus-within');
  }

  /**
   * Calls a function when the pointer or the focus has left the list.
   * @param {() => void} run
   */
  whenLeft(run) {
    this.#list.addEventListener('pointerleave', run);
    // Later, because removing a focused row also ends its focus.
    this.#list.addEventListener('focusout', ({ relatedTarget }) => this.#list.contains(/** @type {Node | null} */ (relatedTarget)) || requestAnimationFrame(run));
  }

  /**
   * Shows these rows.
   * @param {Item[]} items
   * @param {{ all: number, keepsOrder?: boolean }} options `all` is the number of rows without the filter. With `keepsOrder` the rows
   *   keep their present order, and new ones are at the end or below their parent.
   */
  show(items, { all, keepsOrder = false }) {
    const keys = new Set(items.map(({ key }) => key));
    const focused = [...this.#list.children].findIndex((row) => row.contains(document.activeElement));
    for (const [key, { item }] of this.#rows) {
      if (keys.has(key)) continue;
      item.remove();
      this.#rows.delete(key);
    }
    let next = this.#list.firstElementChild;
    /** @type {HTMLLIElement | null} */
    let previous = null;
    for (const item of items) {
      const row = this.#rows.get(item.key) ?? this.#create(item);
      row.update(item);
      if (row.item === next) next = next.nextElementSibling;
      else if (!keepsOrder) this.#list.insertBefore(row.item, next);
      else if (!row.item.parentNode) this.#list.insertBefore(row.item, (item.parent !== undefined && previous?.nextElementSibling) || null);
      previous = row.item;
    }
    this.filter.hidden = all < MIN_FOR_FILTER && this.filter.value === '';
    if (focused >= 0 && !this.#list.contains(document.activeElement)) this.#focusNear(focused);
    this.#updateTabStop();
  }

  /**
   * Focuses the link that is in the place of a removed row.
   * @param {number} place
   */
  #focusNear(place) {
    const links = this.#links();
    const link = links[Math.min(place, links.length - 1)];
    if (link) link.focus();
    else this.#emptied?.();
  }

  /** Makes one row reachable by Tab: the focused or the current one, or the first. */
  #updateTabStop() {
    const rows = [...this.#rows.values()];
    const first = this.#links().at(0);
    const stop = rows.find(({ item }) => item.contains(document.activeElement)) ?? rows.find(({ link }) => link.ariaCurrent !== null) ?? rows.find(({ link }) => link === first);
    for (const row of rows) {
      row.link.tabIndex = row === stop ? 0 : -1;
      if (row.button) row.button.tabIndex = row.link.tabIndex;
    }
  }

  /** The links in the order in which they are shown. */
  #links() {
    return [...this.#list.querySelectorAll('a')];
  }

  /** @param {KeyboardEvent} event */
  #pressed(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const links = this.#links();
    const current = links.findIndex((link) => link === document.activeElement);
    /** @type {Record<string, number>} */
    const targets = { ArrowDown: current + 1, ArrowUp: current - 1, Home: 0, End: links.length - 1 };
    const target = current >= 0 && Object.hasOwn(targets, event.key) ? links[targets[event.key]] : undefined;
    if (!target) return;
    event.preventDefault();
    target.focus();
    this.#updateTabStop();
  }

  /** @param {Item} item */
  #create({ key }) {
    const name = h('bdi');
    const parent = h('span', { class: 'hidden' });
    const number = h('span', { class: 'sidebar-count number' });
    const hidden = h('span', { class: 'hidden' });
    const link = h('a', { class: 'sidebar-link' }, this.#mark?.(key), parent, h('span', { class: 'truncate' }, name), number, hidden);
    const menu = this.#menu && menuButton({ class: 'button plain sidebar-more' }, [icon('more')], () => this.#menu?.(key) ?? []);
    const update = (/** @type {Item} */ item) => {
      name.textContent = visible(item.label);
      parent.textContent = item.parent === undefined ? '' : `${visible(item.parent)}: `;
      link.classList.toggle('is-indented', item.parent !== undefined);
      menu?.setTitle(`Rename or delete ${visible(item.label)}`);
      set(link, { href: item.href, title: item.title, 'aria-current': item.isCurrent && 'page' });
      link.classList.toggle('has-unread', item.isUnread === true);
      number.textContent = item.count > 0 ? count(item.count) : '';
      hidden.textContent = item.count > 0 && item.countWords ? ` ${item.countWords}` : '';
    };
    /** @type {Row} */
    const row = { item: h('li', {}, link, menu?.root), link, button: menu?.button ?? null, update };
    this.#rows.set(key, row);
    return row;
  }
}
