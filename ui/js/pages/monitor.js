// The page `/monitor`: new messages of all mailboxes, newest first. Its state is saved when the user opens a
// message and returns.

/** @import { Arrival } from '../lib/arrivals.js' */
/** @import { Summary } from '../types.js' */

import * as api from '../lib/api.js';
import * as connection from '../lib/connection.js';
import * as keys from '../lib/keys.js';
import * as live from '../lib/live.js';
import * as notifications from '../lib/notifications.js';
import * as paths from '../lib/paths.js';
import { Arrivals } from '../lib/arrivals.js';
import { fill, h } from '../lib/dom.js';
import { matcher } from '../lib/filter.js';
import { count } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { title } from '../lib/title.js';
import { drawArrival } from '../components/arrival-row.js';
import { VirtualList } from '../components/virtual-list.js';

/** Messages within this time after the first connection arrived before it. */
const HISTORY_MS = 600;
/** These messages are drawn together when no more arrive for this time. */
const HISTORY_PAUSE_MS = 120;
/** The interval of title updates in a hidden tab. */
const TITLE_UPDATE_MS = 1_000;

/** The state that is saved when the page is left. */
const state = {
  arrivals: new Arrivals(),
  filter: '',
  isPaused: false,
  /** @type {VirtualList<Arrival>['position']} */
  position: null,
  /** The key of the row that was opened last. @type {string | null} */
  opened: null,
};

export class MonitorPage extends HTMLElement {
  /** Aborted when the page is removed. */
  #disconnected = new AbortController();
  /** The time of the first connection. */
  #firstConnectedAt = Infinity;
  #hiddenCount = 0;
  /** True if visible rows must be redrawn. */
  #isStale = false;
  #frame = 0;
  /** @type {number | undefined} */
  #titleTimer;
  /** Set while earlier messages arrive. @type {number | undefined} */
  #historyTimer;

  #list = /** @type {VirtualList<Arrival>} */ (new VirtualList());
  #heading = h('h1', { tabindex: -1 }, 'Monitor');
  #state = h('span', { class: 'monitor-state', role: 'status' });
  #rows = h('span', { class: 'monitor-count soft number' });
  #empty = h('div', { class: 'monitor-empty', hidden: true });
  #filter = h('input', { class: 'field', type: 'search', placeholder: 'Filter', 'aria-label': 'Filter by sender, recipient, subject or mailbox', title: 'Filter by sender, recipient, subject or mailbox (/)', autocomplete: 'off', autocapitalize: 'none', spellcheck: 'false', oninput: () => this.#filtered(this.#filter.value) });
  #pauseButton = h('button', { class: 'button', type: 'button', onclick: () => this.#pause() });
  #clearButton = h('button', { class: 'button', type: 'button', title: 'Clear this list. No messages are deleted.', onclick: () => this.#clear() }, icon('close'), h('span', { class: 'wide' }, 'Clear'));
  #notificationButton = h('button', { class: 'button', type: 'button', title: 'Desktop notifications of new messages', 'aria-label': 'Desktop notifications', onclick: () => this.#toggleNotifications() }, icon('bell'));

  constructor() {
    super();
    const list = this.#list;
    list.label = 'Arrivals, newest first';
    list.inner = '.arrival-link';
    list.key = ({ key }) => key;
    list.draw = drawArrival;
    list.addEventListener('scroll', () => (state.position = list.position), { capture: true, passive: true });
    list.addEventListener('click', ({ target }) => (state.opened = list.itemAt(target)?.key ?? null), { capture: true });
    list.addEventListener('keydown', (event) => this.#spacePressed(event));
    this.#filter.addEventListener('keydown', (event) => this.#pressedInFilter(event));
  }

  async connectedCallback() {
    const { signal } = this.#disconnected = new AbortController();
    title('Monitor');
    fill(this,
      h('div', { class: 'monitor-bar' }, this.#heading, this.#state, this.#rows, h('span', { class: 'spread' }), this.#filter, this.#pauseButton, this.#clearButton, this.#notificationButton),
      h('div', { class: 'monitor-head', 'aria-hidden': 'true' }, ['Time', 'Mailbox', 'From', 'Subject', 'Size'].map((name) => h('span', {}, name))),
      this.#empty,
      this.#list);
    this.#restore();
    const server = await api.about().catch(() => null);
    if (signal.aborted) return;
    if (server?.['monitor-visible'] === false) fill(this, monitorDisabled());
    else this.#subscribe(signal);
  }

  disconnectedCallback() {
    this.#disconnected.abort();
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#titleTimer);
    clearTimeout(this.#historyTimer);
  }

  /** Restores the state of the last visit and focuses the row that was opened. */
  #restore() {
    const { filter, position, opened } = state;
    this.#filter.value = filter;
    this.#draw();
    this.#list.position = position;
    if (opened === null || this.#list.indexOf(opened) < 0) return;
    this.#list.cursor = opened;
    this.#list.move(0);
  }

  /** @param {AbortSignal} signal */
  #subscribe(signal) {
    const connected = () => {
      state.arrivals.reconnected();
      if (this.#firstConnectedAt === Infinity) this.#firstConnectedAt = performance.now();
      this.#drawHistorySoon();
    };
    const deleted = (/** @type {string} */ mailbox, /** @type {string} */ id) => {
      this.#isStale ||= state.arrivals.delete(mailbox, id);
      this.#drawSoon();
    };
    live.subscribe(null, { connected, stored: (message) => this.#stored(message), deleted }, signal);
    connection.changes.addEventListener('change', () => this.#drawSoon(), { signal });
    document.addEventListener('visibilitychange', () => this.#seen(), { signal });
    const group = 'Monitor';
    keys.add([
      { keys: ['j', 'ArrowDown'], group, label: 'Next row', run: () => this.#list.move(1) },
      { keys: ['k', 'ArrowUp'], group, label: 'Previous row', run: () => this.#list.move(-1) },
      { keys: ['Enter'], group, label: 'Open the message', run: () => this.#list.open() },
      { keys: ['p', ' '], group, label: 'Pause or resume', once: true, run: () => this.#pause() },
      { keys: ['/'], group, label: 'Filter', run: () => this.#filter.select() },
    ], signal);
  }

  /** @param {Summary} message */
  #stored(message) {
    const now = performance.now();
    const isHistory = now - this.#firstConnectedAt < HISTORY_MS;
    const isNew = state.arrivals.add(message, isHistory ? -Infinity : now);
    if (isHistory) return this.#drawHistorySoon();
    if (!isNew) return;
    notifications.notify(message);
    if (document.hidden) {
      this.#hiddenCount += 1;
      this.#titleTimer ??= window.setTimeout(() => this.#countInTitle(), TITLE_UPDATE_MS);
    }
    this.#drawSoon();
  }

  /** Draws earlier messages together, not row by row. */
  #drawHistorySoon() {
    clearTimeout(this.#historyTimer);
    const end = () => {
      this.#historyTimer = undefined;
      this.#draw();
    };
    this.#historyTimer = window.setTimeout(end, Math.max(0, Math.min(HISTORY_PAUSE_MS, this.#firstConnectedAt + HISTORY_MS - performance.now())));
  }

  /** Shows the number of unseen messages in the title. */
  #countInTitle() {
    clearTimeout(this.#titleTimer);
    this.#titleTimer = undefined;
    title('Monitor', state.isPaused ? state.arrivals.waiting : this.#hiddenCount);
  }

  #seen() {
    if (document.hidden) return;
    this.#hiddenCount = 0;
    this.#drawSoon();
  }

  #pause() {
    state.isPaused = !state.isPaused;
    if (!state.isPaused) this.#list.toTop();
    this.#draw();
  }

  #clear() {
    state.arrivals.clear();
    this.#draw();
    // The pressed button is disabled now.
    this.#heading.focus();
  }

  /** @param {string} typed */
  #filtered(typed) {
    state.filter = typed;
    this.#filter.value = typed;
    this.#list.cursor = null;
    this.#list.reset(state.arrivals.matching(matcher(typed)));
    this.#draw();
  }

  async #toggleNotifications() {
    await notifications.toggle();
    this.#draw();
  }

  /**
   * Space pauses also on a row, where it would scroll.
   * @param {KeyboardEvent} event
   */
  #spacePressed(event) {
    if (event.key !== ' ' || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    if (!event.repeat) this.#pause();
  }

  /** @param {KeyboardEvent} event */
  #pressedInFilter(event) {
    // Input methods use these keys to end a word.
    if (event.isComposing) return;
    if (event.key === 'Escape') {
      event.preventDefault();
      this.#filter.blur();
      this.#filtered('');
    }
    if (event.key === 'Enter' || event.key === 'ArrowDown') {
      event.preventDefault();
      this.#list.move(1);
    }
  }

  /** Schedules one redraw per animation frame. */
  #drawSoon() {
    if (this.#historyTimer === undefined) this.#frame ||= requestAnimationFrame(() => this.#draw());
  }

  #draw() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    const matches = matcher(state.filter);
    const taken = state.isPaused ? [] : state.arrivals.take();
    const shown = state.arrivals.matching(matches);
    this.#list.items = shown;
    if (this.#isStale) this.#list.refresh();
    this.#isStale = false;
    this.#list.arrived(matches ? taken.filter(({ text }) => matches(text)).length : taken.length);
    this.#drawState(shown.length);
    this.#drawEmpty(shown.length);
    this.#countInTitle();
  }

  /** @param {number} shown */
  #drawState(shown) {
    const [words, kind] = connection.isLost() ? ['Connection lost', 'lost']
      : this.#firstConnectedAt === Infinity ? ['', '']
      : state.isPaused ? [state.arrivals.waiting ? `Paused, ${count(state.arrivals.waiting)} waiting` : 'Paused', 'paused']
      : ['Live', 'live'];
    if (this.#state.textContent !== words) this.#state.textContent = words;
    this.#state.dataset.state = kind;
    const all = state.arrivals.size;
    this.#rows.textContent = shown === all ? '' : `${count(shown)} of ${count(all)}`;
    const { isPaused } = state;
    if (this.#pauseButton.dataset.paused !== String(isPaused)) {
      this.#pauseButton.dataset.paused = String(isPaused);
      this.#pauseButton.title = isPaused ? 'Resume (p)' : 'Pause (p)';
      fill(this.#pauseButton, icon(isPaused ? 'play' : 'pause'), h('span', { class: 'wide' }, isPaused ? 'Resume' : 'Pause'));
    }
    this.#clearButton.disabled = all === 0;
    this.#notificationButton.setAttribute('aria-pressed', String(notifications.areEnabled()));
  }

  /** @param {number} shown */
  #drawEmpty(shown) {
    this.#empty.hidden = shown > 0 || this.#firstConnectedAt === Infinity || this.#historyTimer !== undefined;
    const filtered = state.arrivals.size > 0;
    if (this.#empty.hidden || this.#empty.dataset.filtered === String(filtered)) return;
    this.#empty.dataset.filtered = String(filtered);
    fill(this.#empty, filtered
      ? h('div', { class: 'empty' }, icon('filter'), h('h2', {}, 'No matching messages'), h('p', {}, 'Every word must occur in the sender, a recipient, the subject or the mailbox.'))
      : h('div', { class: 'empty' }, icon('envelope'), h('h2', {}, 'Waiting for messages'), h('p', {}, 'New messages of all mailboxes appear here automatically. ', h('a', { href: paths.home() }, 'How to send messages'))));
  }
}

function monitorDisabled() {
  return h('div', { class: 'empty' }, icon('shield'), h('h1', {}, 'The monitor is disabled'),
    h('p', {}, 'This server does not show the messages of all mailboxes. Its operator can enable the monitor with the setting ', h('code', {}, 'web.monitorvisible'), '.'),
    h('a', { href: paths.home() }, 'Open a mailbox instead'));
}

customElements.define('monitor-page', MonitorPage);
