// <message-list>: the messages of a mailbox to choose from: the filter, the selection and the rows. What happens to those
// chosen is decided elsewhere; the list asks for it by bubbling events:
//   `pick` { id, how: 'move' | 'open' }    a message is meant: by moving the cursor, or by a click or Enter
//   `act` { what: 'delete' | 'read' | 'unread', ids }

/** @import { Entry } from '../lib/entries.js' */
/** @import { Messages } from '../lib/messages.js' */

import * as paths from '../lib/paths.js';
import { AttachmentCounts } from '../lib/attachment-counts.js';
import { fill, h } from '../lib/dom.js';
import { count } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { matcher } from '../lib/filter.js';
import { placeOf } from '../lib/entries.js';
import { Selection } from '../lib/selection.js';
import { drawMessage } from './message-row.js';
import { VirtualList } from './virtual-list.js';

/** How often the history is told what is in sight; browsers refuse to be told all the time. */
const REMEMBERING = 400;

export class MessageList extends HTMLElement {
  /** @type {Messages | null} */
  #messages = null;
  #selection = new Selection();
  /** @type {((folded: string) => boolean) | null} */
  #fits = null;
  #attachments = new AttachmentCounts(() => this.#messages && { mailbox: this.#messages.mailbox, entries: this.#list.inSight }, () => this.#list.refresh());
  /** @type {number | undefined} */
  #remembering;

  #filter = h('input', { class: 'field', type: 'search', placeholder: 'Filter', 'aria-label': 'Filter by sender, recipient or subject', title: 'Filter by sender, recipient or subject (/)', autocomplete: 'off', spellcheck: 'false' });
  #all = h('input', { type: 'checkbox', 'aria-label': 'Select all', title: 'Select all' });
  #found = h('span', { class: 'soft number', role: 'status' });
  #chosen = h('span', { class: 'number' });
  #filterBar = h('div', { class: 'list-bar' }, this.#filter, this.#found);
  #choiceBar = h('div', { class: 'list-bar', role: 'toolbar', 'aria-label': 'Selected messages', hidden: true });
  #deeper = h('a', { class: 'button small' }, icon('search'), 'Search the texts too');
  #none = h('div', { class: 'list-none soft', hidden: true },
    h('p', {}, 'Nothing here has these words in its sender, recipients or subject.'),
    h('div', { class: 'row' }, h('button', { class: 'button small', type: 'button', onclick: () => this.clearFilter() }, 'Clear the filter'), this.#deeper));
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
    list.place = (id) => placeOf(list.items, id);
    list.link = ({ id, summary }) => paths.mailbox(summary.mailbox, id);
    list.draw = (row, entry) => drawMessage(row, entry, this.#selection.has(entry.id));
    list.addEventListener('click', (event) => this.#clicked(event), { capture: true });
    list.addEventListener('keydown', (event) => this.#pressed(event), { capture: true });
    list.addEventListener('list-move', (event) => this.#pick(event, 'move'));
    list.addEventListener('list-open', (event) => this.#pick(event, 'open'));
    list.addEventListener('list-extend', (event) => this.#extend(/** @type {CustomEvent<{ from: string | null, to: string }>} */ (event).detail));
    list.addEventListener('list-toggle', (event) => this.toggle(/** @type {CustomEvent<Entry>} */ (event).detail.id));
    list.addEventListener('list-sight', () => this.#sighted());
    fill(
      this.#choiceBar,
      this.#chosen,
      h('span', { class: 'spread' }),
      h('button', { class: 'button plain small', type: 'button', onclick: () => this.#act('read') }, 'Read'),
      h('button', { class: 'button plain small', type: 'button', onclick: () => this.#act('unread') }, 'Unread'),
      h('button', { class: 'button plain small danger', type: 'button', onclick: () => this.#act('delete') }, icon('trash'), 'Delete'),
      h('button', { class: 'button plain small', type: 'button', 'aria-label': 'Select none', title: 'Select none (Esc)', onclick: () => this.selectAll(false) }, icon('close')),
    );
  }

  connectedCallback() {
    fill(this, h('div', { class: 'list-tools' }, h('label', { class: 'list-all' }, this.#all), this.#filterBar, this.#choiceBar), this.#none, this.#list);
  }

  disconnectedCallback() {
    this.#attachments.stop();
    clearTimeout(this.#remembering);
    this.#remembering = undefined;
  }

  /** @param {Messages} messages */
  set messages(messages) {
    this.#messages = messages;
    this.#selection = new Selection();
    this.#filter.value = '';
    this.#filtered();
    const { sight } = history.state ?? {};
    this.#list.sight = sight?.mailbox === messages.mailbox ? sight : null;
  }

  /** The id of the message that is meant. */
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

  /** Those that an action is about: the selected ones, or the one at the cursor. */
  get meant() {
    if (this.#selection.size > 0) return this.#selection.among(this.#ids());
    return this.current !== null && this.#messages?.find(this.current) ? [this.current] : [];
  }

  /**
   * The message to go to when these are gone: the next one, or else the one before.
   * @param {string[]} ids
   */
  neighbour(ids) {
    const gone = new Set(ids);
    const all = this.#ids();
    const place = all.indexOf(this.current ?? '');
    const stays = (/** @type {string} */ id) => !gone.has(id);
    return all.slice(place + 1).find(stays) ?? all.slice(0, Math.max(place, 0)).findLast(stays) ?? null;
  }

  /** Takes over what is different in the mailbox. */
  update() {
    this.#list.items = this.#fitting(this.#messages?.entries ?? []);
    this.#selection.prune((id) => this.#messages?.find(id) !== undefined);
    this.#list.refresh();
    this.#draw();
  }

  /** @param {Entry[]} entries */
  arrived(entries) {
    this.#list.arrived(this.#fitting(entries).length);
  }

  /**
   * @param {number} by
   * @param {boolean} [isExtending] Whether to select on the way.
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

  /** Goes one step back: selects none, or clears the filter. */
  stepBack() {
    if (this.#selection.size > 0) this.selectAll(false);
    else if (this.#filter.value !== '') this.clearFilter();
  }

  clearFilter() {
    this.#filter.value = '';
    this.#filtered();
  }

  focusFilter() {
    // The field gives way to the actions while something is selected.
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
  #fitting(entries) {
    const fits = this.#fits;
    return fits ? entries.filter((entry) => entry.fits(fits)) : entries;
  }

  #filtered() {
    this.#fits = matcher(this.#filter.value);
    this.#list.reset(this.#fitting(this.#messages?.entries ?? []));
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
    const hadFocus = this.#choiceBar.contains(document.activeElement);
    this.#choiceBar.hidden = selected === 0;
    this.#filterBar.hidden = selected > 0;
    if (hadFocus && selected === 0) this.focus();
    this.classList.toggle('choosing', selected > 0);
    this.#chosen.textContent = `${count(selected)} selected`;
    this.#all.checked = selected > 0 && selected === shown;
    this.#all.indeterminate = selected > 0 && selected < shown;
    this.#all.disabled = shown === 0;
    this.#found.textContent = this.#fits ? `${count(shown)} of ${count(this.#messages?.entries.length ?? 0)}` : '';
    this.#none.hidden = this.#fits === null || shown > 0;
    this.#deeper.href = paths.search({ query: this.#filter.value.trim(), mailbox: this.#messages?.mailbox });
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
      if (this.#list.place(this.current ?? '') < 0) this.move(0);
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
    const isMark = event.target instanceof Element && event.target.closest('.row-check') !== null;
    if (!entry || !(isMark || event.shiftKey) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    this.focus();
    if (event.shiftKey) this.#extend({ from: this.current, to: entry.id });
    else this.toggle(entry.id);
  }

  /**
   * Selects to here, from where the last one was chosen, or else from there.
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

  /** @param {'delete' | 'read' | 'unread'} what */
  #act(what) {
    this.dispatchEvent(new CustomEvent('act', { bubbles: true, detail: { what, ids: this.meant } }));
    if (what !== 'delete') this.selectAll(false);
  }

  /** Other rows are in sight. */
  #sighted() {
    this.#attachments.soon();
    this.#remembering ??= window.setTimeout(() => this.#remember(), REMEMBERING);
  }

  /** Lets the history know what is in sight, for the way back. */
  #remember() {
    this.#remembering = undefined;
    const { sight } = this.#list;
    // In one column the list may be out of the page, and knows nothing then.
    if (this.#list.offsetHeight > 0) history.replaceState({ ...history.state, sight: sight && { ...sight, mailbox: this.#messages?.mailbox } }, '');
  }
}

customElements.define('message-list', MessageList);
