// <message-list>: the messages of a mailbox with filter and selection. The page handles its bubbling events:
//   `pick` { id, how: 'move' | 'open' }    a message was chosen: by moving the cursor, or by a click or Enter
//   `act` { action: 'delete' | 'read' | 'unread', ids }

/** @import { Entry } from '../lib/entries.js' */
/** @import { Messages } from '../lib/messages.js' */

import * as paths from '../lib/paths.js';
import { AttachmentCounts } from '../lib/attachment-counts.js';
import { fill, h } from '../lib/dom.js';
import { count } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { matcher } from '../lib/filter.js';
import { indexOfEntry } from '../lib/entries.js';
import { Selection } from '../lib/selection.js';
import { drawMessage } from './message-row.js';
import { VirtualList } from './virtual-list.js';

/** The minimum time between two updates of the history entry: browsers limit their number. */
const SAVE_POSITION_MS = 400;

export class MessageList extends HTMLElement {
  /** @type {Messages | null} */
  #messages = null;
  #selection = new Selection();
  /** @type {((folded: string) => boolean) | null} */
  #matches = null;
  #attachments = new AttachmentCounts(() => this.#messages && { mailbox: this.#messages.mailbox, entries: this.#list.visibleItems }, () => this.#list.refresh());
  /** @type {number | undefined} */
  #positionTimer;

  #filter = h('input', { class: 'field', type: 'search', placeholder: 'Filter', 'aria-label': 'Filter by sender, recipient or subject', title: 'Filter by sender, recipient or subject (/)', autocomplete: 'off', spellcheck: 'false' });
  #all = h('input', { type: 'checkbox', 'aria-label': 'Select all', title: 'Select all' });
  #matchCount = h('span', { class: 'soft number', role: 'status' });
  #selectedCount = h('span', { class: 'number' });
  #filterBar = h('div', { class: 'list-bar' }, this.#filter, this.#matchCount);
  #selectionBar = h('div', { class: 'list-bar', role: 'toolbar', 'aria-label': 'Selected messages', hidden: true });
  #searchLink = h('a', { class: 'button small' }, icon('search'), 'Search message texts');
  #none = h('div', { class: 'list-none soft', hidden: true },
    h('p', {}, 'No message has these words in its sender, recipients or subject.'),
    h('div', { class: 'row' }, h('button', { class: 'button small', type: 'button', onclick: () => this.clearFilter() }, 'Clear filter'), this.#searchLink));
  #list = /** @type {VirtualList<Entry>} */ (new VirtualList());

  constructor() {
    super();
    this.#filter.addEventListener('input', () => this.#filtered());
    this.#filter.addEventListener('keydown', (event) => this.#pressedInFilter(event));
    this.#all.addEventListener('change', () => this.selectAll(this.#all.checked));
    const list = this.#list;
    list.label = 'Messages';
    list.isMultiple = true;
    list.key = ({ id }) => id;
    list.indexOf = (id) => indexOfEntry(list.items, id);
    list.link = ({ id, summary }) => paths.mailbox(summary.mailbox, id);
    list.draw = (row, entry) => drawMessage(row, entry, this.#selection.has(entry.id));
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
      h('span', { class: 'spread' }),
      h('button', { class: 'button plain small', type: 'button', onclick: () => this.#act('read') }, 'Mark read'),
      h('button', { class: 'button plain small', type: 'button', onclick: () => this.#act('unread') }, 'Mark unread'),
      h('button', { class: 'button plain small danger', type: 'button', onclick: () => this.#act('delete') }, icon('trash'), 'Delete'),
      h('button', { class: 'button plain small', type: 'button', 'aria-label': 'Select none', title: 'Select none (Esc)', onclick: () => this.selectAll(false) }, icon('close')),
    );
  }

  connectedCallback() {
    fill(this, h('div', { class: 'list-tools' }, h('label', { class: 'list-all' }, this.#all), this.#filterBar, this.#selectionBar), this.#none, this.#list);
  }

  disconnectedCallback() {
    this.#attachments.stop();
    clearTimeout(this.#positionTimer);
    this.#positionTimer = undefined;
  }

  /** @param {Messages} messages */
  set messages(messages) {
    this.#messages = messages;
    this.#selection = new Selection();
    this.#filter.value = '';
    this.#filtered();
    const { position } = history.state ?? {};
    this.#list.position = position?.mailbox === messages.mailbox ? position : null;
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

  /** The ids that an action applies to: the selected messages, or the one at the cursor. */
  get targets() {
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

  /** Updates the list after a change of the mailbox. */
  update() {
    this.#list.items = this.#filterEntries(this.#messages?.entries ?? []);
    this.#selection.prune((id) => this.#messages?.find(id) !== undefined);
    this.#list.refresh();
    this.#draw();
  }

  /** @param {Entry[]} entries */
  arrived(entries) {
    this.#list.arrived(this.#filterEntries(entries).length);
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
    this.#selection.toggle(id);
    this.#selected();
  }

  selectAll(isSelected = true) {
    this.#selection.set(isSelected ? this.#ids() : []);
    this.#selected();
  }

  /** Clears the selection, or else the filter. */
  stepBack() {
    if (this.#selection.size > 0) this.selectAll(false);
    else if (this.#filter.value !== '') this.clearFilter();
  }

  clearFilter() {
    this.#filter.value = '';
    this.#filtered();
  }

  focusFilter() {
    // The actions replace the field while messages are selected.
    this.selectAll(false);
    this.#filter.focus();
    this.#filter.select();
  }

  /** @override */
  focus() {
    this.#list.focus();
  }

  #ids() {
    return this.#list.items.map(({ id }) => id);
  }

  /** @param {Entry[]} entries */
  #filterEntries(entries) {
    const matches = this.#matches;
    return matches ? entries.filter((entry) => entry.matches(matches)) : entries;
  }

  #filtered() {
    this.#matches = matcher(this.#filter.value);
    this.#list.reset(this.#filterEntries(this.#messages?.entries ?? []));
    this.#selection.set([]);
    this.#list.refresh();
    this.#draw();
  }

  #selected() {
    this.#list.refresh();
    this.#draw();
  }

  #draw() {
    const [shown, selected] = [this.#list.items.length, this.#selection.size];
    const hadFocus = this.#selectionBar.contains(document.activeElement);
    this.#selectionBar.hidden = selected === 0;
    this.#filterBar.hidden = selected > 0;
    if (hadFocus && selected === 0) this.focus();
    this.classList.toggle('has-selection', selected > 0);
    this.#selectedCount.textContent = `${count(selected)} selected`;
    this.#all.checked = selected > 0 && selected === shown;
    this.#all.indeterminate = selected > 0 && selected < shown;
    this.#all.disabled = shown === 0;
    this.#matchCount.textContent = this.#matches ? `${count(shown)} of ${count(this.#messages?.entries.length ?? 0)}` : '';
    this.#none.hidden = this.#matches === null || shown > 0;
    this.#searchLink.href = paths.search({ query: this.#filter.value.trim(), mailbox: this.#messages?.mailbox });
  }

  /** @param {KeyboardEvent} event */
  #pressedInFilter(event) {
    if (event.isComposing) return;
    if (event.key === 'Escape') {
      event.preventDefault();
      if (this.#filter.value === '') this.focus();
      else this.clearFilter();
    }
    if (event.key === 'ArrowDown' || event.key === 'Enter') {
      event.preventDefault();
      this.focus();
      if (this.#list.indexOf(this.current ?? '') < 0) this.move(0);
    }
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

  /** @param {'delete' | 'read' | 'unread'} action */
  #act(action) {
    this.dispatchEvent(new CustomEvent('act', { bubbles: true, detail: { action, ids: this.targets } }));
    if (action !== 'delete') this.selectAll(false);
  }

  /** Called when other rows are visible. */
  #visibleChanged() {
    this.#attachments.schedule();
    this.#positionTimer ??= window.setTimeout(() => this.#savePosition(), SAVE_POSITION_MS);
  }

  /** Saves the scroll position in the history entry. */
  #savePosition() {
    this.#positionTimer = undefined;
    const { position } = this.#list;
    // In the one-column layout the list may be hidden and has no position.
    if (this.#list.offsetHeight > 0) history.replaceState({ ...history.state, position: position && { ...position, mailbox: this.#messages?.mailbox } }, '');
  }
}

customElements.define('message-list', MessageList);
