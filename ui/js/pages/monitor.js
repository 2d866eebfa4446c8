// The page `/monitor`: everything as it arrives, newest on top. Whoever opens a message and comes back finds the page as
// it was left.

/** @import { Arrival } from '../lib/arrivals.js' */
/** @import { Summary } from '../types.js' */

import * as api from '../lib/api.js';
import * as connection from '../lib/connection.js';
import * as keys from '../lib/keys.js';
import * as live from '../lib/live.js';
import * as notices from '../lib/notices.js';
import * as paths from '../lib/paths.js';
import { Arrivals } from '../lib/arrivals.js';
import { fill, h } from '../lib/dom.js';
import { matcher } from '../lib/filter.js';
import { count } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { title } from '../lib/title.js';
import { drawArrival } from '../components/arrival-row.js';
import { VirtualList } from '../components/virtual-list.js';

/** What is told within this time of the first connection was there before. */
const HISTORY = 600;
/** It is drawn in one piece, when nothing more has come for this long. */
const PIECE = 120;
/** How often the title counts, in a tab that nobody sees. */
const COUNTING = 1_000;

/** What outlives the page, for the way back. */
const kept = {
  arrivals: new Arrivals(),
  filter: '',
  isPaused: false,
  /** @type {VirtualList<Arrival>['sight']} */
  sight: null,
  /** The row that was opened last. @type {string | null} */
  opened: null,
};

export class MonitorPage extends HTMLElement {
  /** @type {AbortController | null} */
  #life = null;
  /** When the first connection stood; what is told shortly after it is history. */
  #begun = Infinity;
  #unseen = 0;
  /** Whether rows in sight are different from what they were when they were drawn. */
  #isStale = false;
  #frame = 0;
  /** @type {number | undefined} */
  #titleTimer;
  /** Set while history comes in. @type {number | undefined} */
  #gathering;

  #list = /** @type {VirtualList<Arrival>} */ (new VirtualList());
  #heading = h('h1', { tabindex: -1 }, 'Monitor');
  #state = h('span', { class: 'monitor-state', role: 'status' });
  #rows = h('span', { class: 'monitor-count soft number' });
  #empty = h('div', { class: 'monitor-empty', hidden: true });
  #filter = h('input', { class: 'field', type: 'search', placeholder: 'Filter', 'aria-label': 'Filter by sender, recipient, subject or mailbox', title: 'Filter by sender, recipient, subject or mailbox (/)', autocomplete: 'off', autocapitalize: 'none', spellcheck: 'false', oninput: () => this.#filtered(this.#filter.value) });
  #pauseButton = h('button', { class: 'button', type: 'button', onclick: () => this.#pause() });
  #clearButton = h('button', { class: 'button', type: 'button', title: 'Empty this list; nothing is deleted', onclick: () => this.#clear() }, icon('close'), h('span', { class: 'wide' }, 'Clear'));
  #noticeButton = h('button', { class: 'button', type: 'button', title: 'Desktop notices of new mail', 'aria-label': 'Desktop notices', onclick: () => this.#toggleNotices() }, icon('bell'));

  constructor() {
    super();
    const list = this.#list;
    list.label = 'Arrivals, newest first';
    list.inner = '.arrival-link';
    list.key = ({ key }) => key;
    list.draw = drawArrival;
    list.addEventListener('scroll', () => (kept.sight = list.sight), { capture: true, passive: true });
    list.addEventListener('click', ({ target }) => (kept.opened = list.itemAt(target)?.key ?? null), { capture: true });
    list.addEventListener('keydown', (event) => this.#blank(event));
    this.#filter.addEventListener('keydown', (event) => this.#inFilter(event));
  }

  async connectedCallback() {
    const life = new AbortController();
    this.#life = life;
    title('Monitor');
    fill(this,
      h('div', { class: 'monitor-bar' }, this.#heading, this.#state, this.#rows, h('span', { class: 'spread' }), this.#filter, this.#pauseButton, this.#clearButton, this.#noticeButton),
      h('div', { class: 'monitor-head', 'aria-hidden': 'true' }, ['Time', 'Mailbox', 'From', 'Subject', 'Size'].map((name) => h('span', {}, name))),
      this.#empty,
      this.#list);
    this.#comeBack();
    const server = await api.about().catch(() => null);
    if (life.signal.aborted) return;
    if (server?.['monitor-visible'] === false) fill(this, switchedOff());
    else this.#listen(life.signal);
  }

  disconnectedCallback() {
    this.#life?.abort();
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#titleTimer);
    clearTimeout(this.#gathering);
  }

  /** Shows what was there when the page was left, and goes to the row that was opened. */
  #comeBack() {
    const { filter, sight, opened } = kept;
    this.#filter.value = filter;
    this.#draw();
    this.#list.sight = sight;
    if (opened === null || this.#list.place(opened) < 0) return;
    this.#list.cursor = opened;
    this.#list.move(0);
  }

  /** @param {AbortSignal} signal */
  #listen(signal) {
    const begun = () => {
      kept.arrivals.resumed();
      if (this.#begun === Infinity) this.#begun = performance.now();
      this.#gather();
    };
    const deleted = (/** @type {string} */ mailbox, /** @type {string} */ id) => {
      this.#isStale ||= kept.arrivals.delete(mailbox, id);
      this.#drawSoon();
    };
    live.listen(null, { begun, stored: (message) => this.#stored(message), deleted }, signal);
    connection.changes.addEventListener('change', () => this.#drawSoon(), { signal });
    document.addEventListener('visibilitychange', () => this.#seen(), { signal });
    const group = 'Monitor';
    keys.add([
      { keys: ['j', 'ArrowDown'], group, label: 'Next row', run: () => this.#list.move(1) },
      { keys: ['k', 'ArrowUp'], group, label: 'Row before', run: () => this.#list.move(-1) },
      { keys: ['Enter'], group, label: 'Open the message', run: () => this.#list.open() },
      { keys: ['p', ' '], group, label: 'Pause, or go on', once: true, run: () => this.#pause() },
      { keys: ['/'], group, label: 'Filter', run: () => this.#filter.select() },
    ], signal);
  }

  /** @param {Summary} message */
  #stored(message) {
    const now = performance.now();
    const history = now - this.#begun < HISTORY;
    const isNew = kept.arrivals.add(message, history ? -Infinity : now);
    if (history) return this.#gather();
    if (!isNew) return;
    notices.tell(message);
    if (document.hidden) {
      this.#unseen += 1;
      this.#titleTimer ??= window.setTimeout(() => this.#countInTitle(), COUNTING);
    }
    this.#drawSoon();
  }

  /** What was there before is drawn at once, not row by row as it comes. */
  #gather() {
    clearTimeout(this.#gathering);
    const end = () => {
      this.#gathering = undefined;
      this.#draw();
    };
    this.#gathering = window.setTimeout(end, Math.max(0, Math.min(PIECE, this.#begun + HISTORY - performance.now())));
  }

  /** Tells how many there are that nobody has seen. */
  #countInTitle() {
    clearTimeout(this.#titleTimer);
    this.#titleTimer = undefined;
    title('Monitor', kept.isPaused ? kept.arrivals.waiting : this.#unseen);
  }

  #seen() {
    if (document.hidden) return;
    this.#unseen = 0;
    this.#drawSoon();
  }

  #pause() {
    kept.isPaused = !kept.isPaused;
    if (!kept.isPaused) this.#list.toTop();
    this.#draw();
  }

  #clear() {
    kept.arrivals.clear();
    this.#draw();
    // The button that was pressed has nothing left to do.
    this.#heading.focus();
  }

  /** @param {string} typed */
  #filtered(typed) {
    kept.filter = typed;
    this.#filter.value = typed;
    this.#list.cursor = null;
    this.#list.reset(kept.arrivals.matching(matcher(typed)));
    this.#draw();
  }

  async #toggleNotices() {
    await notices.toggle();
    this.#draw();
  }

  /**
   * The blank pauses on a row too, where it would only scroll.
   * @param {KeyboardEvent} event
   */
  #blank(event) {
    if (event.key !== ' ' || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    if (!event.repeat) this.#pause();
  }

  /** @param {KeyboardEvent} event */
  #inFilter(event) {
    // Whoever writes with an input method ends a word with these keys.
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

  /** However much arrives, a frame is drawn once. */
  #drawSoon() {
    if (this.#gathering === undefined) this.#frame ||= requestAnimationFrame(() => this.#draw());
  }

  #draw() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    const fits = matcher(kept.filter);
    const taken = kept.isPaused ? [] : kept.arrivals.take();
    const shown = kept.arrivals.matching(fits);
    this.#list.items = shown;
    if (this.#isStale) this.#list.refresh();
    this.#isStale = false;
    this.#list.arrived(fits ? taken.filter(({ text }) => fits(text)).length : taken.length);
    this.#drawState(shown.length);
    this.#drawEmpty(shown.length);
    this.#countInTitle();
  }

  /** @param {number} shown */
  #drawState(shown) {
    const [words, kind] = connection.isLost() ? ['Connection lost', 'lost']
      : this.#begun === Infinity ? ['', '']
      : kept.isPaused ? [kept.arrivals.waiting ? `Paused, ${count(kept.arrivals.waiting)} waiting` : 'Paused', 'paused']
      : ['Live', 'live'];
    if (this.#state.textContent !== words) this.#state.textContent = words;
    this.#state.dataset.state = kind;
    const all = kept.arrivals.size;
    this.#rows.textContent = shown === all ? '' : `${count(shown)} of ${count(all)}`;
    const { isPaused } = kept;
    if (this.#pauseButton.dataset.paused !== String(isPaused)) {
      this.#pauseButton.dataset.paused = String(isPaused);
      this.#pauseButton.title = isPaused ? 'Go on (p)' : 'Pause (p)';
      fill(this.#pauseButton, icon(isPaused ? 'play' : 'pause'), h('span', { class: 'wide' }, isPaused ? 'Resume' : 'Pause'));
    }
    this.#clearButton.disabled = all === 0;
    this.#noticeButton.setAttribute('aria-pressed', String(notices.areOn()));
  }

  /** @param {number} shown */
  #drawEmpty(shown) {
    this.#empty.hidden = shown > 0 || this.#begun === Infinity || this.#gathering !== undefined;
    const filtered = kept.arrivals.size > 0;
    if (this.#empty.hidden || this.#empty.dataset.filtered === String(filtered)) return;
    this.#empty.dataset.filtered = String(filtered);
    fill(this.#empty, filtered
      ? h('div', { class: 'empty' }, icon('filter'), h('h2', {}, 'Nothing matches'), h('p', {}, 'Every word has to be in the sender, a recipient, the subject or the mailbox.'))
      : h('div', { class: 'empty' }, icon('envelope'), h('h2', {}, 'Waiting for mail'), h('p', {}, 'Whatever arrives, in any mailbox, shows up here by itself. ', h('a', { href: paths.home() }, 'How to send mail here'))));
  }
}

function switchedOff() {
  return h('div', { class: 'empty' }, icon('shield'), h('h1', {}, 'The monitor is switched off'),
    h('p', {}, 'This server does not show the mail of all mailboxes. Its operator can change that with the setting ', h('code', {}, 'web.monitorvisible'), '.'),
    h('a', { href: paths.home() }, 'Open a mailbox instead'));
}

customElements.define('monitor-page', MonitorPage);
