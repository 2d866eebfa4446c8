// <message-list>: a list of messages with filters and selection, for the inbox, a mailbox and search results. The page handles
// its bubbling events:
//   `pick` { id, how: 'move' | 'open' }    a message was chosen: by moving the cursor, or by a click or Enter
//   `act` { action: 'delete' | 'read' | 'unread', ids }    `ids` is null for all messages of the scope, even those not loaded
//   `filter` { query }    another query was chosen

/** @import { Entry } from '../lib/entries.js' */
/** @import { Messages } from '../lib/messages.js' */
/** @import { Scope } from '../lib/scope.js' */

import * as paths from '../lib/paths.js';
import { fill, h } from '../lib/dom.js';
import { count } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { compare, indexOfEntry } from '../lib/entries.js';
import { marker } from '../lib/marks.js';
import { moves } from '../lib/router.js';
import { scopeKey } from '../lib/scope.js';
import { Selection } from '../lib/selection.js';
import { ListFilters } from './list-filters.js';
import { drawMessage } from './message-row.js';
import { VirtualList } from './virtual-list.js';

/** The minimum time between two updates of the history entry: browsers limit their number. */
const SAVE_POSITION_MS = 400;
/** The next page is loaded if fewer rows than this follow the visible ones. */
const ROWS_AHEAD = 60;
/** The maximum number of rows that are loaded to show the row of a message, which may not exist. */
const MAX_ROWS_TO_PENDING = 10_000;

export class MessageList extends HTMLElement {
  /** @type {Messages | null} */
  #messages = null;
  /** Marks the words of the query in a subject. */
  #mark = marker('');
  #selection = new Selection();
  /** True if all messages of the scope are selected, even those not loaded. */
  #isEverything = false;
  /** @type {number | undefined} */
  #positionTimer;
  /** Saves the position at once: the timer would save it in the history entry of the next page. */
  #leave = () => this.#positionTimer !== undefined && this.#savePosition();

  #all = h('input', { type: 'checkbox', 'aria-label': 'Select all', title: 'Select all' });
  #selectedCount = h('span', { class: 'number', role: 'status' });
  #everything = h('button', { class: 'button plain small select-everything', type: 'button', onclick: () => this.#selectEverything() }, 'Select all in this list');
  #filters = new ListFilters();
  #selectionBar = h('div', { class: 'list-bar', role: 'toolbar', 'aria-label': 'Selected messages', hidden: true });
  #list = /** @type {VirtualList<Entry>} */ (new VirtualList());

  constructor() {
    super();
    this.#all.addEventListener('change', () => this.selectAll(this.#all.checked));
    const list = this.#list;
    list.label = 'Messages';
    list.isMultiple = true;
    list.key = ({ id }) => id;
    list.indexOf = (id) => indexOfEntry(list.items, id);
    list.link = ({ id }) => (this.#messages ? paths.list(this.#messages.scope, id) : '');
    list.draw = (row, entry) => drawMessage(row, entry, { isSelected: this.#isSelected(entry.id), hasRecipients: this.#messages?.scope.mailbox === null, mark: this.#mark });
    list.addEventListener('click', (event) => this.#clicked(event), { capture: true });
    list.addEventListener('keydown', (event) => this.#pressed(event), { capture: true });
    list.addEventListener('list-move', (event) => this.#pick(event, 'move'));
    list.addEventListener('list-open', (event) => this.#pick(event, 'open'));
    list.addEventListener('list-extend', (event) => this.#extend(/** @type {CustomEvent<{ from: string | null, to: string }>} */ (event).detail));
    list.addEventListener('list-toggle', (event) => this.toggle(/** @type {CustomEvent<Entry>} */ (event).detail.id));
    list.addEventListener('list-visible', () => this.#visibleChanged());
    fill(
      this.#selectionBar,
      this.#selectedCount,
      this.#everything,
      h('span', { class: 'spread' }),
      this.#action('read', 'Mark read', 'checks'),
      this.#action('unread', 'Mark unread', 'envelope'),
      this.#action('delete', 'Delete', 'trash'),
      h('button', { class: 'button plain small', type: 'button', 'aria-label': 'Select none', title: 'Select none (Esc)', onclick: () => this.selectAll(false) }, icon('close')),
    );
  }

  connectedCallback() {
    fill(this, h('div', { class: 'list-tools' }, h('label', { class: 'list-all' }, this.#all), this.#filters, this.#selectionBar), this.#list);
    moves.addEventListener('leave', this.#leave);
  }

  disconnectedCallback() {
    moves.removeEventListener('leave', this.#leave);
    clearTimeout(this.#positionTimer);
    this.#positionTimer = undefined;
  }

  /**
   * Shows the filters of another scope before its messages are loaded.
   * @param {Scope} scope
   */
  showFilters(scope) {
    this.#filters.show(scope);
  }

  /** Disables the rows, because another list will replace them. */
  deactivate() {
    this.selectAll(false);
    this.#all.disabled = true;
    this.#list.inert = true;
  }

  /** @param {Messages} messages */
  set messages(messages) {
    this.#list.inert = false;
    this.#messages = messages;
    this.#mark = marker(messages.scope.query);
    this.#selection = new Selection();
    this.#isEverything = false;
    this.#list.reset(messages.entries);
    const { position } = history.state ?? {};
    this.#list.position = position?.scope === scopeKey(messages.scope) ? position : null;
  }

  /** The id of the message at the cursor. */
  get current() {
    return this.#list.cursor;
  }

  set current(id) {
    this.#list.cursor = id;
    this.reveal();
  }

  reveal() {
    this.#list.reveal();
  }

  /** The ids that an action applies to: the selected messages, or the one at the cursor. Null for all messages of the scope. */
  get targets() {
    if (this.#isEverything) return null;
    if (this.#selection.size > 0) return this.#selection.among(this.#ids());
    return this.current !== null && this.#messages?.find(this.current) ? [this.current] : [];
  }

  /**
   * Returns the message to show after these are deleted: the next one, or the previous one.
   * @param {string[]} ids
   */
  neighbor(ids) {
    const gone = new Set(ids);
    const all = this.#ids();
    const index = all.indexOf(this.current ?? '');
    const stays = (/** @type {string} */ id) => !gone.has(id);
    return all.slice(index + 1).find(stays) ?? all.slice(0, Math.max(index, 0)).findLast(stays) ?? null;
  }

  /** Updates the list after a change of the messages. */
  update() {
    this.#list.items = this.#messages?.entries ?? [];
    this.#selection.prune((id) => this.#messages?.find(id) !== undefined);
    if (this.#selection.size === 0) this.#isEverything = false;
    this.#list.refresh();
    this.#draw();
    this.#loadAhead();
  }

  /** @param {Entry[]} entries */
  arrived(entries) {
    this.#list.arrived(entries.length);
  }

  /**
   * @param {number} by
   * @param {boolean} [isExtending] True to select the rows in between.
   */
  move(by, isExtending = false) {
    this.#list.move(by, isExtending);
  }

  /** @param {string} id */
  toggle(id) {
    // Deselecting one message leaves the other loaded ones selected.
    if (this.#isEverything) this.selectAll();
    this.#selection.toggle(id);
    this.#selected();
  }

  selectAll(isSelected = true) {
    this.#isEverything = false;
    this.#selection.set(isSelected ? this.#ids() : []);
    this.#selected();
  }

  /** Clears the selection. Returns whether there was one. */
  clearSelection() {
    const hadSelection = this.#isEverything || this.#selection.size > 0;
    if (hadSelection) this.selectAll(false);
    return hadSelection;
  }

  /** @override */
  focus() {
    this.#list.focus();
  }

  #ids() {
    return this.#list.items.map(({ id }) => id);
  }

  /** @param {string} id */
  #isSelected(id) {
    return this.#isEverything || this.#selection.has(id);
  }

  #selectEverything() {
    this.selectAll();
    this.#isEverything = true;
    this.#selected();
    this.focus();
  }

  #selected() {
    this.#list.refresh();
    this.#draw();
  }

  #draw() {
    const messages = this.#messages;
    const [shown, selected] = [this.#list.items.length, this.#selection.size];
    const hadFocus = this.#selectionBar.contains(document.activeElement);
    this.#selectionBar.hidden = selected === 0;
    this.#filters.hidden = selected > 0;
    if (hadFocus && selected === 0) this.focus();
    this.classList.toggle('has-selection', selected > 0);
    this.#selectedCount.textContent = this.#isEverything ? 'All selected' : `${count(selected)} selected`;
    this.#everything.hidden = this.#isEverything || selected < shown || !messages || messages.isComplete;
    this.#all.checked = selected > 0 && selected === shown;
    this.#all.indeterminate = selected > 0 && selected < shown;
    this.#all.disabled = shown === 0;
    if (messages) this.#filters.show(messages.scope);
  }

  /** @param {KeyboardEvent} event */
  #pressed(event) {
    if (event.key !== 'a' || !(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey) return;
    event.preventDefault();
    this.selectAll();
  }

  /** @param {MouseEvent} event */
  #clicked(event) {
    const entry = this.#list.itemAt(event.target);
    const isCheckbox = event.target instanceof Element && event.target.closest('.row-check') !== null;
    if (!entry || !(isCheckbox || event.shiftKey) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    this.focus();
    if (event.shiftKey) this.#extend({ from: this.current, to: entry.id });
    else this.toggle(entry.id);
  }

  /**
   * Selects the range from the last chosen message, or from `from`, to `to`.
   * @param {{ from: string | null, to: string }} range
   */
  #extend({ from, to }) {
    this.#isEverything = false;
    this.#selection.extend(to, this.#ids(), from);
    this.#selected();
  }

  /**
   * @param {Event} event
   * @param {'move' | 'open'} how
   */
  #pick(event, how) {
    const { id } = /** @type {CustomEvent<Entry>} */ (event).detail;
    this.dispatchEvent(new CustomEvent('pick', { bubbles: true, detail: { id, how } }));
  }

  /**
   * @param {'delete' | 'read' | 'unread'} action
   * @param {string} label
   * @param {'checks' | 'envelope' | 'trash'} name
   */
  #action(action, label, name) {
    const act = () => {
      this.dispatchEvent(new CustomEvent('act', { bubbles: true, detail: { action, ids: this.targets } }));
      if (action !== 'delete') this.selectAll(false);
    };
    return h('button', { class: `button plain small${action === 'delete' ? ' danger' : ''}`, type: 'button', title: label, onclick: act }, icon(name), h('span', { class: 'action-label' }, label));
  }

  /** Called when other rows are visible. */
  #visibleChanged() {
    this.#loadAhead();
    this.#positionTimer ??= window.setTimeout(() => this.#savePosition(), SAVE_POSITION_MS);
  }

  /** Loads the next page if the end of the list is near, or if the row to show is not loaded yet. */
  #loadAhead() {
    const messages = this.#messages;
    if (!messages || messages.error) return;
    const { items, pendingKey, visibleItems } = this.#list;
    const [last, lastVisible] = [items.at(-1), visibleItems.at(-1)];
    const isNearEnd = !last || (lastVisible && items.length - this.#list.indexOf(lastVisible.id) < ROWS_AHEAD);
    const isPending = last && pendingKey !== null && items.length < MAX_ROWS_TO_PENDING && compare(pendingKey, last.id) < 0;
    if (isNearEnd || isPending) messages.loadMore();
  }

  /** Saves the scroll position in the history entry. */
  #savePosition() {
    clearTimeout(this.#positionTimer);
    this.#positionTimer = undefined;
    const { position } = this.#list;
    // In the one-column layout the list may be hidden and has no position.
    if (this.#list.offsetHeight > 0 && this.#messages) history.replaceState({ ...history.state, position: position && { ...position, scope: scopeKey(this.#messages.scope) } }, '');
  }
}

customElements.define('message-list', MessageList);
