// The page `/monitor`: everything as it arrives, newest on top.

/** @import { Route, Summary } from '../types.js' */

import * as api from '../lib/api.js';
import * as connection from '../lib/connection.js';
import * as keys from '../lib/keys.js';
import * as live from '../lib/live.js';
import * as notices from '../lib/notices.js';
import * as paths from '../lib/paths.js';
import { Arrivals } from '../lib/arrivals.js';
import { fill, h } from '../lib/dom.js';
import { count } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { title } from '../lib/title.js';
import { ArrivalList } from '../components/arrival-list.js';

/** What is told within this time of the first connection was there before. */
const HISTORY = 600;
/** How often the title counts, in a tab that nobody sees. */
const COUNTING = 1_000;

export class MonitorPage extends HTMLElement {
  /** @type {Route} */
  route = { page: 'monitor' };
  /** @type {AbortController | null} */
  #life = null;
  #arrivals = new Arrivals();
  #paused = false;
  /** When the first connection stood; what is told shortly after it is history. */
  #begun = Infinity;
  #unseen = 0;
  #frame = 0;
  /** @type {number | undefined} */
  #titleTimer;

  #list = /** @type {ArrivalList} */ (document.createElement('arrival-list'));
  #state = h('span', { class: 'monitor-state', role: 'status' });
  #rows = h('span', { class: 'monitor-count soft number' });
  #empty = h('div', { class: 'monitor-empty' });
  #filter = h('input', { class: 'field', type: 'search', placeholder: 'Filter', 'aria-label': 'Filter by sender, recipient, subject or mailbox', title: 'Filter by sender, recipient, subject or mailbox (/)', autocomplete: 'off', autocapitalize: 'none', spellcheck: 'false', oninput: () => this.#draw() });
  #pauseButton = h('button', { class: 'button', type: 'button', onclick: () => this.#pause() });
  #clearButton = h('button', { class: 'button', type: 'button', title: 'Empty this list; nothing is deleted', onclick: () => this.#clear() }, icon('close'), h('span', { class: 'wide' }, 'Clear'));
  #noticeButton = h('button', { class: 'button', type: 'button', title: 'Desktop notices of new mail', 'aria-label': 'Desktop notices', onclick: () => this.#toggleNotices() }, icon('bell'));

  async connectedCallback() {
    const life = new AbortController();
    this.#life = life;
    title('Monitor');
    fill(this,
      h('div', { class: 'monitor-bar' }, h('h1', {}, 'Monitor'), this.#state, this.#rows, h('span', { class: 'spread' }), this.#filter, this.#pauseButton, this.#clearButton, this.#noticeButton),
      h('div', { class: 'monitor-head', 'aria-hidden': 'true' }, ['Time', 'Mailbox', 'From', 'Subject', 'Size'].map((name) => h('span', {}, name))),
      this.#empty,
      this.#list);
    this.#draw();
    const server = await api.about().catch(() => null);
    if (life.signal.aborted) return;
    if (server?.['monitor-visible'] === false) fill(this, switchedOff());
    else this.#listen(life.signal);
  }

  disconnectedCallback() {
    this.#life?.abort();
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#titleTimer);
  }

  /** @param {AbortSignal} signal */
  #listen(signal) {
    const begun = () => {
      if (this.#begun === Infinity) this.#begun = performance.now();
      else this.#arrivals.resumed();
      this.#drawSoon();
    };
    const deleted = (/** @type {string} */ mailbox, /** @type {string} */ id) => this.#arrivals.delete(mailbox, id) && this.#drawSoon();
    live.listen(null, { begun, stored: (message) => this.#stored(message), deleted }, signal);
    connection.changes.addEventListener('change', () => this.#drawSoon(), { signal });
    document.addEventListener('visibilitychange', () => this.#seen(), { signal });
    this.#list.addEventListener('keydown', (event) => this.#blank(event), { signal });
    this.#filter.addEventListener('keydown', (event) => this.#inFilter(event), { signal });
    const group = 'Monitor';
    keys.add([
      { keys: ['j', 'ArrowDown'], group, label: 'Next row', run: () => this.#list.move(1) },
      { keys: ['k', 'ArrowUp'], group, label: 'Row before', run: () => this.#list.move(-1) },
      { keys: ['Enter'], group, label: 'Open the message', run: () => this.#list.open() },
      { keys: ['p', ' '], group, label: 'Pause, or go on', run: () => this.#pause() },
      { keys: ['/'], group, label: 'Filter', run: () => this.#filter.select() },
    ], signal);
  }

  /** @param {Summary} message */
  #stored(message) {
    const now = performance.now();
    const history = now - this.#begun < HISTORY;
    if (!this.#arrivals.add(message, history ? -Infinity : now) || history) return this.#drawSoon();
    notices.tell(message);
    if (document.hidden) {
      this.#unseen += 1;
      this.#titleTimer ??= window.setTimeout(() => this.#countInTitle(), COUNTING);
    }
    this.#drawSoon();
  }

  #countInTitle() {
    this.#titleTimer = undefined;
    title('Monitor', this.#unseen);
  }

  #seen() {
    if (document.hidden) return;
    this.#unseen = 0;
    this.#countInTitle();
    this.#drawSoon();
  }

  #pause() {
    this.#paused = !this.#paused;
    if (!this.#paused) this.#list.toTop();
    this.#draw();
  }

  #clear() {
    this.#arrivals.clear();
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
    this.#pause();
  }

  /** @param {KeyboardEvent} event */
  #inFilter(event) {
    if (event.key === 'Escape') {
      event.preventDefault();
      this.#filter.value = '';
      this.#filter.blur();
      this.#draw();
    }
    if (event.key === 'Enter' || event.key === 'ArrowDown') {
      event.preventDefault();
      this.#list.move(1);
    }
  }

  /** However much arrives, a frame is drawn once. */
  #drawSoon() {
    this.#frame ||= requestAnimationFrame(() => this.#draw());
  }

  #draw() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    if (!this.#paused) this.#arrivals.take();
    const shown = this.#arrivals.matching(this.#filter.value);
    this.#list.show(shown);
    this.#list.refresh();
    this.#drawState(shown.length);
    this.#drawEmpty(shown.length);
  }

  /** @param {number} shown */
  #drawState(shown) {
    const [words, kind] = connection.isLost() ? ['Connection lost', 'lost']
      : this.#begun === Infinity ? ['', '']
      : this.#paused ? [this.#arrivals.waiting ? `Paused, ${count(this.#arrivals.waiting)} waiting` : 'Paused', 'paused']
      : ['Live', 'live'];
    if (this.#state.textContent !== words) this.#state.textContent = words;
    this.#state.dataset.state = kind;
    const all = this.#arrivals.size;
    this.#rows.textContent = shown === all ? '' : `${count(shown)} of ${count(all)}`;
    if (this.#pauseButton.dataset.paused !== String(this.#paused)) {
      this.#pauseButton.dataset.paused = String(this.#paused);
      this.#pauseButton.title = this.#paused ? 'Go on (p)' : 'Pause (p)';
      fill(this.#pauseButton, icon(this.#paused ? 'play' : 'pause'), h('span', { class: 'wide' }, this.#paused ? 'Resume' : 'Pause'));
    }
    this.#clearButton.disabled = all === 0;
    this.#noticeButton.setAttribute('aria-pressed', String(notices.areOn()));
  }

  /** @param {number} shown */
  #drawEmpty(shown) {
    this.#empty.hidden = shown > 0 || this.#begun === Infinity;
    const filtered = this.#arrivals.size > 0;
    if (this.#empty.hidden || this.#empty.dataset.filtered === String(filtered)) return;
    this.#empty.dataset.filtered = String(filtered);
    fill(this.#empty, filtered
      ? h('div', { class: 'empty' }, icon('filter'), h('h2', {}, 'Nothing matches'), h('p', {}, 'Every word has to be in the sender, a recipient, the subject or the mailbox.'))
      : h('div', { class: 'empty' }, icon('envelope'), h('h2', {}, 'Waiting for mail'), h('p', {}, 'Whatever arrives, in any mailbox, shows up here by itself. ', h('a', { href: paths.home() }, 'How to send mail here'))));
  }
}

function switchedOff() {
  return h('div', { class: 'empty' }, icon('shield'), h('h2', {}, 'The monitor is switched off'),
    h('p', {}, 'This server does not show the mail of all mailboxes. Its operator can change that with the setting ', h('code', {}, 'web.monitorvisible'), '.'),
    h('a', { href: paths.home() }, 'Open a mailbox instead'));
}

customElements.define('monitor-page', MonitorPage);
