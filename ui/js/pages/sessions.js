// The page `/sessions`: who has connected to bring mail, what became of it, and what was said. Nobody tells of new sessions,
// so the page asks when somebody wants to know.

/** @import { Route, Session } from '../types.js' */

import * as api from '../lib/api.js';
import * as paths from '../lib/paths.js';
import { fill, h } from '../lib/dom.js';
import { clock, exact, plural } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { go } from '../lib/router.js';
import { title } from '../lib/title.js';
import { visible } from '../lib/visible.js';
import { client, transcript } from '../components/transcript.js';

export class SessionsPage extends HTMLElement {
  /** @type {Route} */
  #route = { page: 'missing' };
  #asking = new AbortController();
  /** Where to go on. @type {string | null} */
  #next = null;

  #refused = h('input', { type: 'checkbox', onchange: () => go(paths.sessions({ refused: this.#refused.checked }), { replace: true }) });
  #choice = h('label', { class: 'sessions-choice' }, this.#refused, 'Refused only');
  #all = h('a', { href: paths.sessions() }, 'All sessions');
  #state = h('div', { class: 'sessions-state', 'aria-live': 'polite' });
  #list = h('ol', { class: 'sessions sheet', 'aria-label': 'Sessions, the latest first', hidden: true });
  #more = h('button', { class: 'button', type: 'button', hidden: true, onclick: () => this.#load(this.#next) }, 'Show more');

  get route() {
    return this.#route;
  }

  set route(route) {
    this.#route = route;
    if (this.isConnected) this.#follow();
  }

  connectedCallback() {
    title('Sessions');
    const refresh = h('button', { class: 'button', type: 'button', onclick: () => this.#load(null) }, icon('again'), 'Refresh');
    fill(this, h('div', { class: 'page sessions-page' },
      h('div', { class: 'sessions-head' }, h('h1', { tabindex: -1 }, 'SMTP sessions'), h('span', { class: 'spread' }), this.#all, this.#choice, refresh),
      h('p', { class: 'soft' }, 'Who has brought mail, or tried to, and what was said. The mail itself and passwords are not in it.'),
      this.#state, this.#list, h('div', { class: 'search-more' }, this.#more)));
    this.#follow();
  }

  disconnectedCallback() {
    this.#asking.abort();
  }

  /** Shows what the address asks for. */
  #follow() {
    if (this.#route.page !== 'sessions') return;
    const { refused, id } = this.#route;
    this.#refused.checked = refused;
    this.#choice.hidden = id !== null;
    this.#all.hidden = id === null;
    this.#load(null);
  }

  /**
   * Asks for sessions: from the latest on, in place of those that are shown, or for those before one.
   * @param {string | null} before
   */
  async #load(before) {
    if (this.#route.page !== 'sessions') return;
    const { refused, id } = this.#route;
    this.#asking.abort();
    const { signal } = this.#asking = new AbortController();
    const server = await api.about().catch(() => null);
    if (signal.aborted) return;
    if (server?.['monitor-visible'] === false) return fill(this.#state, switchedOff());
    try {
      const { sessions, next } = id === null
        ? await api.sessions({ refused, before: before ?? undefined, signal })
        : { sessions: [(await api.session(id, signal)).session], next: null };
      const hadFocus = document.activeElement === this.#more;
      const rows = sessions.map((session) => row(session, id !== null));
      if (before === null) fill(this.#list, rows);
      else this.#list.append(...rows);
      this.#next = next;
      this.#more.hidden = next === null;
      this.#list.hidden = this.#list.children.length === 0;
      if (hadFocus) rows.at(0)?.querySelector('summary')?.focus();
      fill(this.#state, this.#list.hidden && nothing(refused));
    } catch (error) {
      if (signal.aborted) return;
      fill(this.#state, h('p', { class: 'note bad', role: 'alert' }, icon('warning'), api.sentence(error)));
    }
  }
}

function switchedOff() {
  return h('p', { class: 'note' }, icon('shield'), 'This server does not show the mail of all mailboxes, nor who has brought it. Each message tells how it came itself.');
}

/** @param {boolean} refused */
function nothing(refused) {
  return h('div', { class: 'empty' }, icon('envelope'), h('h2', {}, refused ? 'Nothing was refused' : 'No sessions yet'),
    h('p', {}, refused ? 'No session that is remembered has a refusal in it.' : 'Whoever connects to bring mail is listed here.'));
}

/**
 * A session, which opens to what was said.
 * @param {Session} session
 * @param {boolean} isOpen
 */
function row(session, isOpen) {
  const { id, tls, user, transactions, refused, 'started-millis': started } = session;
  const said = h('div', { class: 'session-said' });
  const details = h('details', { class: 'session', open: isOpen },
    h('summary', {},
      h('time', { class: 'soft number', title: exact(started) }, clock(started)),
      h('span', { class: 'session-client cut' }, ...client(session)),
      h('span', { class: 'session-about cut' }, about(session)),
      h('span', { class: 'session-marks' },
        tls !== null && h('span', { class: 'badge' }, 'TLS'),
        user !== null && h('span', { class: 'badge' }, h('bdi', {}, visible(user))),
        transactions.length > 1 && h('span', { class: 'badge' }, plural(transactions.length, 'mail')),
        refused > 0 && h('span', { class: 'badge refused' }, `${refused} refused`))),
    said);
  details.addEventListener('toggle', () => details.open && !said.firstChild && tell(said, id));
  return h('li', {}, details);
}

/**
 * What the session was about, in one line: its last mail.
 * @param {Session} session
 */
function about({ transactions }) {
  const last = transactions.at(-1);
  if (!last) return h('span', { class: 'soft' }, 'no mail');
  const [first, ...others] = last.to;
  return h('bdi', {}, `${visible(last.from) || '<>'} → ${first === undefined ? 'nobody' : visible(first)}${others.length > 0 ? ` and ${plural(others.length, 'other')}` : ''}`);
}

/**
 * @param {HTMLElement} place
 * @param {string} id
 */
async function tell(place, id) {
  fill(place, h('p', { class: 'soft' }, 'Loading…'));
  try {
    fill(place, transcript(await api.session(id)));
  } catch (error) {
    fill(place, h('p', { class: 'note bad', role: 'alert' }, icon('warning'), api.sentence(error)));
  }
}

customElements.define('sessions-page', SessionsPage);
