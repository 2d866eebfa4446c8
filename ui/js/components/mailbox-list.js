// <mailbox-list>: the mailboxes that contain messages. Events of new messages update the counts, and the list is reloaded
// periodically, because there are no events for messages that are read.

/** @import { Mailbox, MailboxPage, Summary } from '../types.js' */

import * as api from '../lib/api.js';
import * as live from '../lib/live.js';
import * as paths from '../lib/paths.js';
import { fill, h } from '../lib/dom.js';
import { fold, matcher } from '../lib/filter.js';
import { count, size } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { visible } from '../lib/visible.js';
import { deleteEverything } from './delete-everything.js';
import { TimeAgo } from './time-ago.js';

const LIMIT = 1000;
/** The delay of a reload after an event, and the minimum time between two reloads. */
const RELOAD_DELAY_MS = 800;
const MIN_RELOAD_MS = 4_000;
/** The minimum time between two redraws. */
const REDRAW_MS = 250;
const TYPING_DELAY_MS = 200;
const LOADING_DELAY_MS = 200;
/** Events within this time after connecting are from before the connection. */
const HISTORY_MS = 600;
/** The filter is shown for this number of mailboxes and more. */
const MIN_FOR_FILTER = 6;

/** @typedef {{ item: HTMLLIElement, update(mailbox: Mailbox): void }} Row */

export class MailboxList extends HTMLElement {
  /** Aborted when the element is removed. */
  #disconnected = new AbortController();
  /** @type {AbortController | null} */
  #request = null;
  /** @type {Map<string, Mailbox>} */
  #mailboxes = new Map();
  /** @type {Map<string, Row>} */
  #rows = new Map();
  /** True if these are all mailboxes; false if they are the first ones with a prefix. */
  #complete = true;
  #isLoaded = false;
  /** @type {unknown} The error of the first request, or null. */
  #error = null;
  #loadedAt = 0;
  #connectedAt = 0;
  /** @type {Record<'load' | 'draw' | 'type', number | undefined>} */
  #timers = { load: undefined, draw: undefined, type: undefined };

  #list = h('ul', { class: 'mailboxes', 'aria-labelledby': 'mailboxes' });
  #state = h('div', { class: 'mailboxes-state', 'aria-live': 'polite' });
  #total = h('span', { class: 'soft number' });
  #filter = h('input', { class: 'field', type: 'search', 'aria-label': 'Filter mailboxes', autocomplete: 'off', autocapitalize: 'none', spellcheck: 'false', hidden: true, oninput: () => this.#typed() });
  #purge = h('button', { class: 'button plain', type: 'button', 'aria-label': 'Delete everything', title: 'Delete everything', hidden: true, onclick: () => this.#deleteEverything() }, icon('trash'));

  async connectedCallback() {
    const { signal } = this.#disconnected = new AbortController();
    this.classList.add('waiting');
    fill(this,
      h('div', { class: 'mailboxes-head' }, h('h2', { id: 'mailboxes' }, 'Mailboxes'), this.#total, h('span', { class: 'spread' }), this.#filter, this.#purge),
      h('div', { class: 'sheet' }, this.#state, this.#list));
    await this.#removeIfHidden();
    if (signal.aborted) return;
    this.#load();
    live.subscribe(null, { connected: () => this.#connected(), stored: (message) => this.#stored(message), deleted: () => this.#scheduleLoad() }, signal);
    document.addEventListener('visibilitychange', () => document.hidden || this.#scheduleLoad(0), { signal });
    // The order of rows is updated when the pointer or the focus leaves the list.
    this.#list.addEventListener('pointerleave', () => this.#drawSoon(), { signal });
    this.#list.addEventListener('focusout', () => this.#drawSoon(), { signal });
    setTimeout(() => this.#isLoaded || signal.aborted || this.#draw(), LOADING_DELAY_MS);
  }

  disconnectedCallback() {
    this.#disconnected.abort();
    this.#request?.abort();
    Object.values(this.#timers).forEach(clearTimeout);
  }

  /** If the monitor is disabled, the list of mailboxes is not shown either. */
  async #removeIfHidden() {
    const server = await api.about().catch(() => null);
    if (server?.['monitor-visible'] === false) this.remove();
  }

  #connected() {
    this.#connectedAt = performance.now();
    this.#scheduleLoad(0);
    this.#removeIfHidden();
  }

  /** @param {number} [wait] */
  #scheduleLoad(wait = RELOAD_DELAY_MS) {
    // A hidden tab reloads when it is shown again.
    if (this.#timers.load !== undefined || document.hidden) return;
    const due = Math.max(wait, this.#loadedAt + MIN_RELOAD_MS - Date.now());
    this.#timers.load = window.setTimeout(() => this.#load(), this.#isLoaded ? due : wait);
  }

  async #load() {
    clearTimeout(this.#timers.load);
    this.#timers.load = undefined;
    this.#request?.abort();
    this.#request = new AbortController();
    this.#loadedAt = Date.now();
    const prefix = this.#complete ? '' : this.#filter.value.trim().toLowerCase();
    try {
      const page = await api.mailboxes({ limit: LIMIT, prefix, signal: this.#request.signal });
      this.#loaded(page, prefix);
    } catch (error) {
      if (api.wasAborted(error)) return;
      // After the first load, the old list stays. The bar shows that the connection is lost.
      this.#error = error;
      if (!this.#isLoaded) this.#draw();
    }
  }

  /**
   * @param {MailboxPage} page
   * @param {string} prefix
   */
  #loaded({ mailboxes, next }, prefix) {
    this.#isLoaded = true;
    this.#complete = next === null && prefix === '';
    this.#mailboxes = new Map(mailboxes.map((mailbox) => [mailbox.name, mailbox]));
    this.#filter.placeholder = this.#complete ? 'Filter' : 'Start of the name…';
    this.#draw();
  }

  /** @param {Summary} message */
  #stored(message) {
    // A hidden tab reloads when it is shown again.
    if (document.hidden) return;
    this.#scheduleLoad();
    // After connecting, the server sends the last messages again. Some of them may be deleted.
    if (!this.#isLoaded || performance.now() - this.#connectedAt < HISTORY_MS) return;
    const { mailbox: name, id, 'posix-millis': millis } = message;
    const mailbox = this.#mailboxes.get(name);
    // Skips messages that the last load has counted, and mailboxes outside of the listed part.
    if (mailbox ? millis < mailbox.newest['posix-millis'] || id === mailbox.newest.id : !this.#complete || this.#mailboxes.size >= LIMIT) return;
    const { messages, unseen, bytes } = mailbox ?? { messages: 0, unseen: 0, bytes: 0 };
    const newest = { id, date: message.date, 'posix-millis': millis };
    this.#mailboxes.set(name, { name, messages: messages + 1, unseen: unseen + 1, bytes: bytes + message.size, newest });
    this.#drawSoon();
  }

  #typed() {
    if (this.#complete) return this.#draw();
    clearTimeout(this.#timers.type);
    this.#timers.type = window.setTimeout(() => this.#load(), TYPING_DELAY_MS);
  }

  async #deleteEverything() {
    if (!(await deleteEverything())) return;
    await this.#load();
    // The pressed button may be hidden now.
    if (this.#purge.hidden) this.closest('home-page')?.querySelector('input')?.focus();
  }

  #drawSoon() {
    this.#timers.draw ??= window.setTimeout(() => this.#draw(), REDRAW_MS);
  }

  #draw() {
    clearTimeout(this.#timers.draw);
    this.#timers.draw = undefined;
    const shown = this.#isLoaded ? this.#shown() : [];
    this.classList.toggle('waiting', !this.#isLoaded && this.#error === null);
    this.#arrange(shown);
    const all = this.#mailboxes.size;
    this.#total.textContent = all === 0 ? '' : this.#isPart() ? `first ${count(all)}` : count(all);
    this.#filter.hidden = this.#complete && all < MIN_FOR_FILTER && !this.#filter.value;
    this.#purge.hidden = all === 0;
    this.#list.hidden = shown.length === 0;
    this.#explain(shown.length);
  }

  #isPart() {
    return !this.#complete && this.#mailboxes.size >= LIMIT;
  }

  /** Returns the mailboxes to show: the one with the newest message first, or by name if only a part is loaded. */
  #shown() {
    const mailboxes = [...this.#mailboxes.values()];
    if (!this.#complete) return mailboxes;
    const matches = matcher(this.#filter.value);
    const newestFirst = (/** @type {Mailbox} */ a, /** @type {Mailbox} */ b) => b.newest['posix-millis'] - a.newest['posix-millis'];
    return mailboxes.filter(({ name }) => matches?.(fold(name)) ?? true).sort(newestFirst);
  }

  /**
   * Updates the rows. They keep their order while the pointer or the focus is in the list.
   * @param {Mailbox[]} shown
   */
  #arrange(shown) {
    const names = new Set(shown.map(({ name }) => name));
    for (const [name, { item }] of this.#rows) {
      if (!names.has(name)) item.remove();
      // Rows of filtered mailboxes are kept for later.
      if (!this.#mailboxes.has(name)) this.#rows.delete(name);
    }
    const keepOrder = this.#complete && this.#list.matches(':hover, :focus-within');
    let next = this.#list.firstElementChild;
    for (const mailbox of shown) {
      const known = this.#rows.get(mailbox.name);
      const { item, update } = known ?? row(mailbox);
      if (!known) this.#rows.set(mailbox.name, { item, update });
      update(mailbox);
      if (keepOrder) {
        if (!item.parentNode) this.#list.append(item);
      } else if (item === next) {
        next = next.nextElementSibling;
      } else {
        this.#list.insertBefore(item, next);
      }
    }
  }

  /** @param {number} shown */
  #explain(shown) {
    const filter = this.#filter.value.trim();
    /** @type {Node | null} */
    let note = null;
    if (!this.#isLoaded) note = this.#error ? failed(this.#error, () => this.#load()) : h('p', { class: 'mailboxes-wait soft' }, 'Loading…');
    else if (shown === 0 && filter) note = h('p', { class: 'mailboxes-none soft' }, `No mailbox name contains “${filter}”.`);
    else if (shown === 0) note = h('div', { class: 'mailboxes-none' }, icon('envelope'), h('h3', {}, 'No messages yet'), h('p', { class: 'soft' }, 'Send a message to any address, for example with one of the snippets. Its mailbox appears here automatically.'));
    else if (this.#isPart()) note = h('p', { class: 'note' }, `This list shows the first ${count(LIMIT)} mailboxes by name. Enter the start of a name to find others.`);
    // Screen readers announce every change of a live region, so the same text is not inserted again.
    if (this.#state.textContent !== (note?.textContent ?? '')) fill(this.#state, note);
  }
}

/**
 * @param {unknown} error
 * @param {() => void} again
 */
function failed(error, again) {
  return h('p', { class: 'note bad' }, icon('warning'), h('span', {}, `The mailboxes could not be loaded. ${api.sentence(error)}`),
    h('button', { class: 'button small', type: 'button', onclick: again }, 'Try again'));
}

/**
 * @param {Mailbox} mailbox
 * @returns {Row}
 */
function row({ name, newest }) {
  const unread = h('span', { class: 'badge unread' });
  const messages = h('span', { class: 'mailbox-messages soft number' });
  const shownName = visible(name);
  const bytes = h('span', { class: 'mailbox-size soft number' });
  const time = TimeAgo.create(newest['posix-millis']);
  time.className = 'mailbox-time soft number';
  const item = h('li', {}, h('a', { class: 'mailbox-row', href: paths.mailbox(name) },
    h('span', { class: 'mailbox-name truncate', title: shownName }, h('bdi', {}, shownName)), unread, messages, bytes, time));
  let before = '';
  const update = (/** @type {Mailbox} */ mailbox) => {
    const now = [mailbox.messages, mailbox.unseen, mailbox.bytes, mailbox.newest['posix-millis']].join();
    if (now === before) return;
    before = now;
    item.classList.toggle('has-unread', mailbox.unseen > 0);
    unread.hidden = mailbox.unseen === 0;
    fill(unread, count(mailbox.unseen), h('span', { class: 'hidden' }, ' unread of '));
    fill(messages, count(mailbox.messages), h('span', { class: 'mailbox-unit' }, mailbox.messages === 1 ? ' message' : ' messages'));
    bytes.textContent = size(mailbox.bytes);
    time.millis = mailbox.newest['posix-millis'];
  };
  return { item, update };
}

customElements.define('mailbox-list', MailboxList);
