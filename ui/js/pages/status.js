// The page `/status`: version, counters, charts of the last hour, and the configuration.

/** @import { Server, Status, Vars } from '../types.js' */

import * as api from '../lib/api.js';
import * as connection from '../lib/connection.js';
import * as paths from '../lib/paths.js';
import { fill, h } from '../lib/dom.js';
import { clock, count, date, duration, plural, size } from '../lib/format.js';
import { growth, level } from '../lib/last-hour.js';
import { icon } from '../lib/icons.js';
import { Poll } from '../lib/poll.js';
import { title } from '../lib/title.js';
import { describeConfig } from '../lib/config-text.js';
import { HourChart } from '../components/chart.js';
import { pageHead } from '../components/page-head.js';
import { TimeAgo } from '../components/time-ago.js';

const REFRESH_MS = 5_000;

/**
 * The counters: label, meaning and value of each.
 * @type {{ label: string, meaning: string, value: (vars: Vars) => string }[]}
 */
const FIGURES = [
  { label: 'Messages received', meaning: 'Accepted since the server started, with discarded messages', value: ({ smtp }) => count(smtp.ReceivedTotal) },
  { label: 'Stored messages', meaning: 'Currently in all mailboxes', value: ({ retention }) => count(retention.RetainedCurrent) },
  { label: 'Store size', meaning: 'Total size of the stored messages', value: ({ retention }) => size(retention.RetainedSize) },
  { label: 'Expired messages', meaning: 'Deleted because of the retention period', value: ({ retention }) => count(retention.DeletesTotal) },
  { label: 'Connections', meaning: 'SMTP and LMTP connections since the server started', value: ({ smtp }) => count(smtp.ConnectsTotal) },
  { label: 'Open connections', meaning: 'Current SMTP and LMTP connections', value: ({ smtp }) => count(smtp.ConnectsCurrent) },
  { label: 'Errors', meaning: 'Messages that could not be stored', value: ({ smtp }) => count(smtp.ErrorsTotal) },
  { label: 'Warnings', meaning: 'Other refusals: by a rule, by a limit, or because of a syntax error', value: ({ smtp }) => count(smtp.WarnsTotal) },
  { label: 'Live monitors', meaning: 'Pages and programs that receive live events', value: ({ http }) => count(http.WebSocketConnectsCurrent) },
  { label: 'Memory', meaning: 'Memory of the server process', value: ({ memstats }) => (memstats.Sys > 0 ? size(memstats.Sys) : '–') },
];

export class StatusPage extends HTMLElement {
  /** Aborted when the page is removed. */
  #disconnected = new AbortController();
  #tracker = connection.track();
  #poll = new Poll(() => this.#refresh(), { interval: REFRESH_MS, repetitions: Infinity });
  /** @type {number | undefined} */
  #clock;
  #started = 0;
  #loadedAt = 0;
  /** The difference between the clocks of the browser and the server. */
  #clockOffset = 0;

  #uptime = h('span', { class: 'number' });
  #about = h('p', { class: 'soft' });
  #note = h('p', { class: 'status-note', role: 'status' });
  #values = FIGURES.map(() => h('dd', { class: 'number' }, '–'));
  #received = /** @type {HourChart} */ (document.createElement('hour-chart'));
  #stored = /** @type {HourChart} */ (document.createElement('hour-chart'));
  #size = /** @type {HourChart} */ (document.createElement('hour-chart'));
  #config = h('div', { class: 'status-words' });

  connectedCallback() {
    this.#disconnected = new AbortController();
    title('Status');
    fill(this, h('div', { class: 'page status' },
      pageHead('Status', this.#about, this.#note),
      h('section', { class: 'live-figures', 'aria-labelledby': 'status-figures' },
        h('h2', { class: 'hidden', id: 'status-figures' }, 'Figures'),
        h('dl', { class: 'figures sheet' }, FIGURES.map(({ label, meaning }, index) => h('div', { class: 'figure', title: meaning }, h('dt', {}, label), this.#values[index]))),
        h('div', { class: 'charts' }, [this.#received, this.#stored, this.#size].map((chart) => h('div', { class: 'sheet' }, chart)))),
      h('section', { class: 'configuration' }, h('h2', {}, 'Configuration'), this.#config),
      h('p', { class: 'soft' }, 'Programs get these values from the ', h('a', { class: 'api', href: paths.api() }, 'REST API'), '.')));
    this.#clock = window.setInterval(() => this.#tick(), 1_000);
    this.#poll.startNow();
  }

  disconnectedCallback() {
    this.#disconnected.abort();
    this.#tracker.up();
    this.#poll.stop();
    clearInterval(this.#clock);
  }

  /** Loads the counters. Returns true: they are loaded again. */
  async #refresh() {
    const { signal } = this.#disconnected;
    try {
      const { vars, now } = await api.vars(signal);
      this.#loadedAt = Date.now();
      if (vars.startMillis !== this.#started) {
        // The server has restarted, perhaps with another configuration.
        if (this.#started) api.resetServer();
        this.#clockOffset = this.#loadedAt - now;
        await this.#loadConfig(signal);
      }
      this.#started = vars.startMillis;
      this.#draw(vars);
      this.#updateNote(null);
    } catch (error) {
      if (!api.wasAborted(error)) this.#updateNote(error);
    }
    return true;
  }

  /** @param {AbortSignal} signal */
  async #loadConfig(signal) {
    const [status, server] = await Promise.all([api.status(signal), api.about().catch(() => null)]);
    this.#describe(status, server);
  }

  /**
   * @param {Status} status
   * @param {Server | null} server
   */
  #describe(status, server) {
    const built = Date.parse(status['build-date']);
    fill(this.#about, `Restante ${status.version}`, Number.isNaN(built) ? '' : [', built ', TimeAgo.create(built, date)], ', up ', this.#uptime);
    fill(this.#config, describeConfig(status, server).map((section) => h('section', { class: 'sheet' }, h('h3', {}, section.title), h('ul', {}, section.sentences.map((sentence) => h('li', {}, sentence))))));
  }

  /**
   * Shows why the values are not current, or that they are.
   * @param {unknown} error Null if the last request succeeded.
   */
  #updateNote(error) {
    this.classList.toggle('stale', error !== null);
    if (error === null) {
      this.#tracker.up();
      fill(this.#note);
      return;
    }
    if (error instanceof api.ApiError && error.status === 0) this.#tracker.down();
    const since = this.#loadedAt ? ` The values are from ${clock(this.#loadedAt)}.` : '';
    fill(this.#note, icon('warning'), h('span', {}, `${api.sentence(error)}${since} The page tries again automatically.`));
  }

  #tick() {
    if (this.#started && !this.classList.contains('stale')) this.#uptime.textContent = duration(Date.now() - this.#clockOffset - this.#started);
  }

  /** @param {Vars} vars */
  #draw(vars) {
    FIGURES.forEach(({ value }, index) => (this.#values[index].textContent = value(vars)));
    const messages = (/** @type {number} */ value) => plural(value, 'message');
    const { smtp, retention } = vars;
    this.#received.draw({ kind: 'bars', label: 'Messages per minute', values: growth(smtp.ReceivedHist, smtp.ReceivedTotal), format: messages });
    this.#stored.draw({ kind: 'line', label: 'Stored messages', values: level(retention.RetainedHist, retention.RetainedCurrent), format: messages });
    this.#size.draw({ kind: 'line', label: 'Store size', values: level(retention.SizeHist, retention.RetainedSize), format: size });
    this.#tick();
  }
}

customElements.define('status-page', StatusPage);
