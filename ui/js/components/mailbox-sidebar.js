// <mailbox-sidebar>: the navigation between the inbox and the mailboxes, with the number of unread messages of each. The filter
// selects mailboxes by name.

/** @import { Mailboxes } from '../lib/mailboxes.js' */
/** @import { Mailbox } from '../types.js' */

import * as api from '../lib/api.js';
import * as paths from '../lib/paths.js';
import { fill, h, set } from '../lib/dom.js';
import { fold, matcher } from '../lib/filter.js';
import { count, plural } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { visible } from '../lib/visible.js';

const TYPING_DELAY_MS = 200;
/** The filter is shown for this number of mailboxes and more. */
const MIN_FOR_FILTER = 8;

/** @typedef {{ item: HTMLLIElement, link: HTMLAnchorElement, update(mailbox: Mailbox): void }} Row */

export class MailboxSidebar extends HTMLElement {
  /** @type {Mailboxes | null} */
  #mailboxes = null;
  /** The mailbox that is shown; null for the inbox. @type {string | null} */
  #current = null;
  /** @type {Map<string, Row>} */
  #rows = new Map();
  /** @type {number | undefined} */
  #typeTimer;

  #inbox = h('a', { class: 'sidebar-link', href: paths.inbox() }, icon('envelope'), h('span', { class: 'truncate' }, 'Inbox'));
  #heading = h('h2', { class: 'sidebar-heading', id: 'sidebar-mailboxes' }, 'Mailboxes');
  #filter = h('input', { class: 'field', type: 'search', placeholder: 'Filter mailboxes', 'aria-label': 'Filter mailboxes', autocomplete: 'off', autocapitalize: 'none', spellcheck: 'false', hidden: true, oninput: () => this.#typed() });
  #list = h('ul', { class: 'sidebar-mailboxes', 'aria-labelledby': 'sidebar-mailboxes' });
  #note = h('p', { class: 'sidebar-note soft', role: 'status' });

  connectedCallback() {
    if (this.firstChild) return;
    this.id = 'mailbox-sidebar';
    this.#list.addEventListener('keydown', (event) => this.#pressed(event));
    fill(this, h('nav', { 'aria-label': 'Mailboxes' }, this.#inbox, this.#heading, this.#filter, this.#list, this.#note));
    // The order of rows is updated when the pointer or the focus leaves the list.
    this.#list.addEventListener('pointerleave', () => this.draw());
    // Drawn later, because removing a focused row also ends its focus.
    this.#list.addEventListener('focusout', ({ relatedTarget }) => this.#list.contains(/** @type {Node | null} */ (relatedTarget)) || requestAnimationFrame(() => this.draw()));
  }

  disconnectedCallback() {
    clearTimeout(this.#typeTimer);
  }

  /** @override */
  focus() {
    this.#inbox.focus();
  }

  /**
   * Shows these mailboxes until the signal is aborted.
   * @param {Mailboxes} mailboxes
   * @param {AbortSignal} signal
   */
  show(mailboxes, signal) {
    this.#mailboxes = mailboxes;
    mailboxes.addEventListener('change', () => this.draw(), { signal });
    this.draw();
  }

  /**
   * @param {string | null} mailbox Null for all mailboxes.
   * @param {boolean} isSearch True if search results are shown.
   */
  select(mailbox, isSearch) {
    this.#current = mailbox;
    set(this.#inbox, { 'aria-current': mailbox === null && !isSearch && 'page' });
    for (const [name, { link }] of this.#rows) set(link, { 'aria-current': name === mailbox && 'page' });
    this.#updateTabStop();
  }

  draw() {
    const mailboxes = this.#mailboxes;
    if (!mailboxes) return;
    const shown = this.#shown(mailboxes);
    this.#arrange(mailboxes, shown);
    this.#updateTabStop();
    const all = mailboxes.all.size;
    this.#filter.hidden = mailboxes.isComplete && all < MIN_FOR_FILTER && this.#filter.value === '';
    this.#filter.placeholder = mailboxes.isComplete ? 'Filter mailboxes' : 'Start of the name';
    this.#note.textContent = this.#describe(mailboxes, shown.length);
    this.#note.hidden = this.#note.textContent === '';
  }

  /**
   * @param {Mailboxes} mailboxes
   * @param {number} shown
   */
  #describe({ isLoaded, isComplete, error, all }, shown) {
    if (error !== null && !isLoaded) return `The mailboxes could not be loaded. ${api.sentence(error)}`;
    if (!isLoaded) return '';
    if (shown === 0) return this.#filter.value.trim() === '' ? 'No mailboxes yet' : 'No matching mailboxes';
    return isComplete ? '' : `The first ${count(all.size)} mailboxes. Enter the start of a name to see others.`;
  }

  /**
   * Returns the mailboxes to show: the one with the newest message first, or by name if only a part is loaded.
   * @param {Mailboxes} mailboxes
   */
  #shown({ all, isComplete }) {
    if (!isComplete) return [...all.values()];
    const matches = matcher(this.#filter.value);
    const newestFirst = (/** @type {Mailbox} */ a, /** @type {Mailbox} */ b) => b.newest['posix-millis'] - a.newest['posix-millis'];
    return [...all.values()].filter(({ name }) => matches?.(fold(name)) ?? true).sort(newestFirst);
  }

  #typed() {
    const mailboxes = this.#mailboxes;
    if (!mailboxes || mailboxes.isComplete) return this.draw();
    clearTimeout(this.#typeTimer);
    mailboxes.prefix = this.#filter.value.trim().toLowerCase();
    this.#typeTimer = window.setTimeout(() => mailboxes.load(), TYPING_DELAY_MS);
  }

  /**
   * Updates the rows. They keep their order while the pointer or the focus is in the list.
   * @param {Mailboxes} mailboxes
   * @param {Mailbox[]} shown
   */
  #arrange({ all, isComplete }, shown) {
    const names = new Set(shown.map(({ name }) => name));
    for (const [name, { item }] of this.#rows) {
      if (!names.has(name)) item.remove();
      // Rows of filtered mailboxes are kept for later.
      if (!all.has(name)) this.#rows.delete(name);
    }
    const keepsOrder = isComplete && this.#list.matches(':hover, :focus-within');
    let next = this.#list.firstElementChild;
    for (const mailbox of shown) {
      const row = this.#rows.get(mailbox.name) ?? this.#create(mailbox);
      row.update(mailbox);
      if (keepsOrder) {
        if (!row.item.parentNode) this.#list.append(row.item);
      } else if (row.item === next) {
        next = next.nextElementSibling;
      } else {
        this.#list.insertBefore(row.item, next);
      }
    }
  }

  /** Makes one mailbox reachable by Tab: the current or focused one, or the first. Arrow keys move between them. */
  #updateTabStop() {
    const links = this.#links();
    const stop = links.find((link) => link === document.activeElement) ?? links.find((link) => link.ariaCurrent !== null) ?? links.at(0);
    for (const link of links) link.tabIndex = link === stop ? 0 : -1;
  }

  /** The links of the mailboxes, in the order in which they are shown. */
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
    const target = Object.hasOwn(targets, event.key) ? links[targets[event.key]] : undefined;
    if (!target) return;
    event.preventDefault();
    target.focus();
    this.#updateTabStop();
  }

  /** @param {Mailbox} mailbox */
  #create({ name }) {
    const unread = h('span', { class: 'badge unread' });
    const hidden = h('span', { class: 'hidden' });
    const link = h('a', { class: 'sidebar-link', href: paths.mailbox(name), 'aria-current': name === this.#current && 'page' }, h('span', { class: 'truncate' }, h('bdi', {}, visible(name))), unread, hidden);
    const update = (/** @type {Mailbox} */ { messages, unseen }) => {
      link.classList.toggle('has-unread', unseen > 0);
      link.title = `${visible(name)}: ${plural(messages, 'message')}, ${unseen === 0 ? 'none' : count(unseen)} unread`;
      unread.hidden = unseen === 0;
      unread.textContent = count(unseen);
      hidden.textContent = unseen > 0 ? ' unread' : '';
    };
    const row = { item: h('li', {}, link), link, update };
    this.#rows.set(name, row);
    return row;
  }
}

customElements.define('mailbox-sidebar', MailboxSidebar);
