// The page `/status`: what the server is, what it does now and did in the last hour, and how it is configured.

/** @import { Server, Status, Vars } from '../types.js' */

import * as api from '../lib/api.js';
import * as connection from '../lib/connection.js';
import * as paths from '../lib/paths.js';
import { fill, h } from '../lib/dom.js';
import { count, duration, plural, size } from '../lib/format.js';
import { growth, level } from '../lib/history.js';
import { icon } from '../lib/icons.js';
import { title } from '../lib/title.js';
import { inWords } from '../lib/wording.js';
import { HourChart } from '../components/chart.js';

const REFRESH = 5_000;
const DATE = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' });
const TIME = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' });

/**
 * The figures: what each is called, what it means, and where it is found.
 * @type {{ label: string, meaning: string, value: (vars: Vars) => string }[]}
 */
const FIGURES = [
  { label: 'Messages received', meaning: 'Taken in since the server started, whether they were kept or not', value: ({ smtp }) => count(smtp.ReceivedTotal) },
  { label: 'Messages kept', meaning: 'In all mailboxes now', value: ({ retention }) => count(retention.RetainedCurrent) },
  { label: 'Store size', meaning: 'All kept messages together', value: ({ retention }) => size(retention.RetainedSize) },
  { label: 'Deleted by age', meaning: 'Messages that were kept for as long as configured', value: ({ retention }) => count(retention.DeletesTotal) },
  { label: 'Connections', meaning: 'SMTP and LMTP, since the server started', value: ({ smtp }) => count(smtp.ConnectsTotal) },
  { label: 'Connected now', meaning: 'SMTP and LMTP', value: ({ smtp }) => count(smtp.ConnectsCurrent) },
  { label: 'Errors', meaning: 'Mail that the store could not take', value: ({ smtp }) => count(smtp.ErrorsTotal) },
  { label: 'Warnings', meaning: 'Whatever else was refused: by the rules, by a limit, or as malformed', value: ({ smtp }) => count(smtp.WarnsTotal) },
  { label: 'Live monitors', meaning: 'Pages and programs that listen for arrivals', value: ({ http }) => count(http.WebSocketConnectsCurrent) },
  { label: 'Memory', meaning: 'Taken by the server', value: ({ memstats }) => (memstats.Sys > 0 ? size(memstats.Sys) : '–') },
];

export class StatusPage extends HTMLElement {
  /** @type {AbortController | null} */
  #life = null;
  #connection = connection.line();
  /** @type {number | undefined} */
  #timer;
  /** @type {number | undefined} */
  #clock;
  #asking = false;
  #started = 0;
  #answered = 0;
  /** By how much our clock is ahead of the server's. */
  #ahead = 0;

  #uptime = h('span', { class: 'number' });
  #about = h('p', { class: 'soft' });
  #note = h('p', { class: 'status-note', role: 'status' });
  #values = FIGURES.map(() => h('dd', { class: 'number' }, '–'));
  #mail = /** @type {HourChart} */ (document.createElement('hour-chart'));
  #kept = /** @type {HourChart} */ (document.createElement('hour-chart'));
  #size = /** @type {HourChart} */ (document.createElement('hour-chart'));
  #words = h('div', { class: 'status-words' });

  connectedCallback() {
    this.#life = new AbortController();
    title('Status');
    fill(this, h('div', { class: 'page status' },
      h('div', {}, h('div', { class: 'status-head' }, h('h1', {}, 'Status'), h('a', { class: 'button to-sessions', href: paths.sessions() }, 'SMTP sessions')), h('div', { class: 'status-line' }, this.#about, this.#note)),
      h('section', { class: 'live-figures', 'aria-label': 'Figures' },
        h('dl', { class: 'figures sheet' }, FIGURES.map(({ label, meaning }, index) => h('div', { class: 'figure', title: meaning }, h('dt', {}, label), this.#values[index]))),
        h('div', { class: 'charts' }, [this.#mail, this.#kept, this.#size].map((chart) => h('div', { class: 'sheet' }, chart)))),
      h('section', { class: 'configuration' }, h('h2', {}, 'Configuration'), this.#words),
      h('p', { class: 'soft' }, 'What this page shows, and more, programs can ask for: ', h('a', { class: 'api', href: paths.api() }, 'the API'), '.')));
    this.#clock = window.setInterval(() => this.#tick(), 1_000);
    document.addEventListener('visibilitychange', () => document.hidden || this.#refresh(), { signal: this.#life.signal });
    this.#refresh();
  }

  disconnectedCallback() {
    this.#life?.abort();
    this.#connection.up();
    clearTimeout(this.#timer);
    clearInterval(this.#clock);
  }

  /** Asks now, and again after a while for as long as somebody looks. */
  async #refresh() {
    const signal = this.#life?.signal;
    if (!signal || signal.aborted || this.#asking) return;
    clearTimeout(this.#timer);
    this.#asking = true;
    try {
      const { vars, now } = await api.vars(signal);
      this.#answered = Date.now();
      if (vars.startMillis !== this.#started) {
        // Another start is another server, perhaps with another configuration.
        if (this.#started) api.restarted();
        this.#ahead = this.#answered - now;
        await this.#configured(signal);
      }
      this.#started = vars.startMillis;
      this.#draw(vars);
      this.#lost(null);
    } catch (error) {
      if (!api.wasAborted(error)) this.#lost(error);
    } finally {
      this.#asking = false;
    }
    if (!signal.aborted && !document.hidden) this.#timer = window.setTimeout(() => this.#refresh(), REFRESH);
  }

  /** @param {AbortSignal} signal */
  async #configured(signal) {
    const [status, server] = await Promise.all([api.status(signal), api.about().catch(() => null)]);
    this.#describe(status, server);
  }

  /**
   * @param {Status} status
   * @param {Server | null} server
   */
  #describe(status, server) {
    const built = new Date(status['build-date']);
    fill(this.#about, `Restante ${status.version}`, Number.isNaN(built.getTime()) ? '' : `, built ${DATE.format(built)}`, ', up ', this.#uptime);
    fill(this.#words, inWords(status, server).map((chapter) => h('section', { class: 'sheet' }, h('h3', {}, chapter.title), h('ul', {}, chapter.sentences.map((sentence) => h('li', {}, sentence))))));
  }

  /** @param {unknown} error */
  #lost(error) {
    this.classList.toggle('stale', error !== null);
    if (error === null) {
      this.#connection.up();
      fill(this.#note);
      return;
    }
    if (error instanceof api.ApiError && error.status === 0) this.#connection.down();
    const since = this.#answered ? ` These are the figures of ${TIME.format(this.#answered)}.` : '';
    fill(this.#note, icon('warning'), h('span', {}, `${api.sentence(error)}${since} Trying again by itself.`));
  }

  #tick() {
    if (this.#started && !this.classList.contains('stale')) this.#uptime.textContent = duration(Date.now() - this.#ahead - this.#started);
  }

  /** @param {Vars} vars */
  #draw(vars) {
    FIGURES.forEach(({ value }, index) => (this.#values[index].textContent = value(vars)));
    const messages = (/** @type {number} */ value) => plural(value, 'message');
    const { smtp, retention } = vars;
    this.#mail.draw({ kind: 'bars', label: 'Mail per minute', values: growth(smtp.ReceivedHist, smtp.ReceivedTotal), format: messages });
    this.#kept.draw({ kind: 'line', label: 'Messages kept', values: level(retention.RetainedHist, retention.RetainedCurrent), format: messages });
    this.#size.draw({ kind: 'line', label: 'Store size', values: level(retention.SizeHist, retention.RetainedSize), format: size });
    this.#tick();
  }
}

customElements.define('status-page', StatusPage);
