// <mailbox-list>: the mailboxes that hold something, kept true while mail arrives. Arrivals are counted as they are
// told, and the server is asked again now and then, because deletions and reading change numbers that nobody tells.

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
/** How long after something happened the server is asked, and how much time is left between two questions. */
const SETTLE = 800;
const REST = 4_000;
/** How often the rows are drawn at most. */
const DRAW = 250;
const TYPING = 200;
const PATIENCE = 200;
/** What is told within this time of a connection happened before it. */
const HISTORY = 600;
/** With fewer, nobody needs a filter. */
const MANY = 6;

/** @typedef {{ item: HTMLLIElement, update(mailbox: Mailbox): void }} Row */

export class MailboxList extends HTMLElement {
  /** @type {AbortController | null} */
  #life = null;
  /** @type {AbortController | null} */
  #question = null;
  /** @type {Map<string, Mailbox>} */
  #mailboxes = new Map();
  /** @type {Map<string, Row>} */
  #rows = new Map();
  /** Whether these are all mailboxes that there are, or the first ones with a prefix. */
  #complete = true;
  #known = false;
  /** @type {unknown} Why nothing is known. */
  #failure = null;
  #askedAt = 0;
  #begunAt = 0;
  /** @type {Record<'ask' | 'draw' | 'type', number | undefined>} */
  #timers = { ask: undefined, draw: undefined, type: undefined };

  #list = h('ul', { class: 'mailboxes', 'aria-labelledby': 'mailboxes' });
  #state = h('div', { class: 'mailboxes-state', 'aria-live': 'polite' });
  #total = h('span', { class: 'soft number' });
  #filter = h('input', { class: 'field', type: 'search', 'aria-label': 'Filter mailboxes', autocomplete: 'off', autocapitalize: 'none', spellcheck: 'false', hidden: true, oninput: () => this.#typed() });
  #purge = h('button', { class: 'button plain', type: 'button', 'aria-label': 'Delete everything', title: 'Delete everything', hidden: true, onclick: () => this.#deleteEverything() }, icon('trash'));

  async connectedCallback() {
    this.#life = new AbortController();
    const { signal } = this.#life;
    this.classList.add('waiting');
    fill(this,
      h('div', { class: 'mailboxes-head' }, h('h2', { id: 'mailboxes' }, 'Mailboxes'), this.#total, h('span', { class: 'spread' }), this.#filter, this.#purge),
      h('div', { class: 'sheet' }, this.#state, this.#list));
    await this.#seeWhetherAllowed();
    if (signal.aborted) return;
    this.#ask();
    live.listen(null, { begun: () => this.#begun(), stored: (message) => this.#stored(message), deleted: () => this.#askSoon() }, signal);
    document.addEventListener('visibilitychange', () => document.hidden || this.#askSoon(0), { signal });
    // What waited for the pointer or the focus to leave is put in order then.
    this.#list.addEventListener('pointerleave', () => this.#drawSoon(), { signal });
    this.#list.addEventListener('focusout', () => this.#drawSoon(), { signal });
    setTimeout(() => this.#known || signal.aborted || this.#draw(), PATIENCE);
  }

  disconnectedCallback() {
    this.#life?.abort();
    this.#question?.abort();
    Object.values(this.#timers).forEach(clearTimeout);
  }

  /** Who may not watch the mail of all may not see whose there is either. */
  async #seeWhetherAllowed() {
    const server = await api.about().catch(() => null);
    if (server?.['monitor-visible'] === false) this.remove();
  }

  #begun() {
    this.#begunAt = performance.now();
    this.#askSoon(0);
    this.#seeWhetherAllowed();
  }

  /** @param {number} [wait] */
  #askSoon(wait = SETTLE) {
    // A tab that nobody sees asks when it is seen again.
    if (this.#timers.ask !== undefined || document.hidden) return;
    const due = Math.max(wait, this.#askedAt + REST - Date.now());
    this.#timers.ask = window.setTimeout(() => this.#ask(), this.#known ? due : wait);
  }

  async #ask() {
    clearTimeout(this.#timers.ask);
    this.#timers.ask = undefined;
    this.#question?.abort();
    this.#question = new AbortController();
    this.#askedAt = Date.now();
    const prefix = this.#complete ? '' : this.#filter.value.trim().toLowerCase();
    try {
      const page = await api.mailboxes({ limit: LIMIT, prefix, signal: this.#question.signal });
      this.#told(page, prefix);
    } catch (error) {
      if (api.wasAborted(error)) return;
      // Later on, an old list is better than none; the bar says that the connection is lost.
      this.#failure = error;
      if (!this.#known) this.#draw();
    }
  }

  /**
   * @param {MailboxPage} page
   * @param {string} prefix
   */
  #told({ mailboxes, next }, prefix) {
    this.#known = true;
    this.#complete = next === null && prefix === '';
    this.#mailboxes = new Map(mailboxes.map((mailbox) => [mailbox.name, mailbox]));
    this.#filter.placeholder = this.#complete ? 'Filter' : 'Name begins with…';
    this.#draw();
  }

  /** @param {Summary} message */
  #stored(message) {
    // A tab that nobody sees asks when it is seen again.
    if (document.hidden) return;
    this.#askSoon();
    // The last messages are told again at first, of which some may be gone.
    if (!this.#known || performance.now() - this.#begunAt < HISTORY) return;
    const { mailbox: name, id, 'posix-millis': millis } = message;
    const mailbox = this.#mailboxes.get(name);
    // What the answer to the last question counted already; and what would not be in the part that is listed.
    if (mailbox ? millis < mailbox.newest['posix-millis'] || id === mailbox.newest.id : !this.#complete || this.#mailboxes.size >= LIMIT) return;
    const { messages, unseen, bytes } = mailbox ?? { messages: 0, unseen: 0, bytes: 0 };
    const newest = { id, date: message.date, 'posix-millis': millis };
    this.#mailboxes.set(name, { name, messages: messages + 1, unseen: unseen + 1, bytes: bytes + message.size, newest });
    this.#drawSoon();
  }

  #typed() {
    if (this.#complete) return this.#draw();
    clearTimeout(this.#timers.type);
    this.#timers.type = window.setTimeout(() => this.#ask(), TYPING);
  }

  async #deleteEverything() {
    if (!(await deleteEverything())) return;
    await this.#ask();
    // The button that was pressed may have nothing left to do.
    if (this.#purge.hidden) this.closest('home-page')?.querySelector('input')?.focus();
  }

  #drawSoon() {
    this.#timers.draw ??= window.setTimeout(() => this.#draw(), DRAW);
  }

  #draw() {
    clearTimeout(this.#timers.draw);
    this.#timers.draw = undefined;
    const shown = this.#known ? this.#shown() : [];
    this.classList.toggle('waiting', !this.#known && this.#failure === null);
    this.#arrange(shown);
    const all = this.#mailboxes.size;
    this.#total.textContent = all === 0 ? '' : this.#isPart() ? `first ${count(all)}` : count(all);
    this.#filter.hidden = this.#complete && all < MANY && !this.#filter.value;
    this.#purge.hidden = all === 0;
    this.#list.hidden = shown.length === 0;
    this.#explain(shown.length);
  }

  #isPart() {
    return !this.#complete && this.#mailboxes.size >= LIMIT;
  }

  /** The mailboxes to show, in their order: the last arrival first, or by name where only a part is known. */
  #shown() {
    const mailboxes = [...this.#mailboxes.values()];
    if (!this.#complete) return mailboxes;
    const fits = matcher(this.#filter.value);
    const newestFirst = (/** @type {Mailbox} */ a, /** @type {Mailbox} */ b) => b.newest['posix-millis'] - a.newest['posix-millis'];
    return mailboxes.filter(({ name }) => fits?.(fold(name)) ?? true).sort(newestFirst);
  }

  /**
   * Makes the rows those of these mailboxes. While somebody points at the list or is in it, rows keep their places.
   * @param {Mailbox[]} shown
   */
  #arrange(shown) {
    const names = new Set(shown.map(({ name }) => name));
    for (const [name, { item }] of this.#rows) {
      if (!names.has(name)) item.remove();
      // What is only filtered out comes back sooner or later.
      if (!this.#mailboxes.has(name)) this.#rows.delete(name);
    }
    const held = this.#complete && this.#list.matches(':hover, :focus-within');
    let place = this.#list.firstElementChild;
    for (const mailbox of shown) {
      const known = this.#rows.get(mailbox.name);
      const { item, update } = known ?? row(mailbox);
      if (!known) this.#rows.set(mailbox.name, { item, update });
      update(mailbox);
      if (held) {
        if (!item.parentNode) this.#list.append(item);
      } else if (item === place) {
        place = place.nextElementSibling;
      } else {
        this.#list.insertBefore(item, place);
      }
    }
  }

  /** @param {number} shown */
  #explain(shown) {
    const filter = this.#filter.value.trim();
    /** @type {Node | null} */
    let words = null;
    if (!this.#known) words = this.#failure ? failed(this.#failure, () => this.#ask()) : h('p', { class: 'mailboxes-wait soft' }, 'Asking…');
    else if (shown === 0 && filter) words = h('p', { class: 'mailboxes-none soft' }, `No mailbox with “${filter}”.`);
    else if (shown === 0) words = h('div', { class: 'mailboxes-none' }, icon('envelope'), h('h3', {}, 'No mail yet'), h('p', { class: 'soft' }, 'Send a mail to any address with one of the snippets; its mailbox appears here by itself.'));
    else if (this.#isPart()) words = h('p', { class: 'note' }, `There are more mailboxes than the ${count(LIMIT)} listed here, by name. Type the beginning of a name to see those.`);
    // A live region speaks when it is filled, so the same words are left alone.
    if (this.#state.textContent !== (words?.textContent ?? '')) fill(this.#state, words);
  }
}

/**
 * @param {unknown} error
 * @param {() => void} again
 */
function failed(error, again) {
  return h('p', { class: 'note bad' }, icon('warning'), h('span', {}, `The mailboxes could not be listed. ${api.sentence(error)}`),
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
  const time = TimeAgo.of(newest['posix-millis']);
  time.className = 'mailbox-time soft number';
  const item = h('li', {}, h('a', { class: 'mailbox-row', href: paths.mailbox(name) },
    h('span', { class: 'mailbox-name cut', title: shownName }, h('bdi', {}, shownName)), unread, messages, bytes, time));
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
