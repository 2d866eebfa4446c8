// What is known of a session, and what was said in it. Texts of clients are shown as they are told, never more than text.

/** @import { Said, Session, Transaction, Transcript } from '../types.js' */

import * as paths from '../lib/paths.js';
import { h } from '../lib/dom.js';
import { exact } from '../lib/format.js';
import { visible } from '../lib/visible.js';
import { inSteps } from './message/steps.js';

const FIRST_LINES = 300;
const FIRST_MAILS = 20;
const FIRST_RECIPIENTS = 20;

/** A reply that says no. */
const REFUSAL = /^[45]\d\d/u;

/** @type {Record<string, string>} */
const ENDINGS = {
  quit: 'the client said goodbye',
  left: 'the client left without a word',
  timeout: 'the client fell silent',
  errors: 'the client made too many mistakes',
  tls: 'the TLS handshake failed',
  refused: 'there were too many connections',
  shutdown: 'the server was stopped',
  lost: 'the server ended first',
};

/** @param {Transcript} told */
export function transcript({ session, lines }) {
  const place = (/** @type {HTMLButtonElement} */ button) => h('li', {}, button);
  return h('div', { class: 'transcript' },
    facts(session),
    h('ul', { class: 'session-mails', 'aria-label': 'Mails' }, inSteps(session.transactions, mail, { first: FIRST_MAILS, place })),
    h('ol', { class: 'said', 'aria-label': 'What was said' }, inSteps(lines, line, { first: FIRST_LINES, place })));
}

/**
 * Who the client is: its address, and what it calls itself.
 * @param {Session} session
 */
export function client({ client, helo }) {
  return [h('span', {}, client ?? 'a local socket'), helo !== null && h('bdi', { class: 'soft' }, visible(helo))];
}

/** @param {Session} session */
function facts(session) {
  const { protocol, tls, user, ending, 'started-millis': started, 'ended-millis': ended } = session;
  const lasted = ended === null ? 'it is still open' : `after ${seconds(ended - started)}`;
  /** @type {[string, (Node | string | false)[]][]} */
  const known = [
    ['Client', client(session)],
    ['Began', [exact(started)]],
    ['Ended', [ending === null ? lasted : `${lasted}: ${ENDINGS[ending] ?? visible(ending)}`]],
    ['Encryption', [tls ? `${visible(tls.version)}, ${visible(tls.cipher)}` : 'none']],
    ['Login', user === null ? ['none'] : [h('bdi', {}, visible(user))]],
    ['Protocol', [protocol.toUpperCase()]],
  ];
  return h('dl', { class: 'session-facts' }, known.map(([name, words]) => h('div', {}, h('dt', {}, name), h('dd', {}, ...words))));
}

/** @param {Transaction} mail */
function mail({ from, to, parameters, outcome, reply, messages }) {
  const said = (/** @type {string} */ text) => text !== '' && h('bdi', { class: 'mono session-parameters' }, visible(text));
  const place = (/** @type {HTMLButtonElement} */ button) => h('li', {}, button);
  const recipients = to.map((address, at) => ({ address, more: parameters.rcpt[at] ?? '' }));
  return h('li', { class: 'session-mail' },
    h('div', { class: 'session-from' }, h('span', { class: 'soft' }, 'Mail from '), h('bdi', {}, visible(from) || '<>'), said(parameters.mail)),
    h('ul', {}, inSteps(recipients, ({ address, more }) => h('li', {}, h('span', { class: 'soft' }, 'to '), h('bdi', {}, visible(address)), said(more)), { first: FIRST_RECIPIENTS, place })),
    h('div', { class: 'session-outcome' }, h('span', { class: `badge ${outcome}` }, outcome), reply !== null && h('bdi', { class: 'mono' }, visible(reply)),
      messages.slice(0, FIRST_RECIPIENTS).map(({ mailbox, id }) => h('a', { href: paths.mailbox(mailbox, id) }, h('bdi', {}, visible(mailbox))))));
}

/** @param {Said} line */
function line({ from, text, 'after-millis': after }) {
  const [letter, name] = from === 'client' ? ['C', 'Client'] : ['S', 'Server'];
  return h('li', { class: `said-${from === 'client' ? 'client' : 'server'}${from === 'server' && REFUSAL.test(text) ? ' refusal' : ''}` },
    h('span', { class: 'said-at soft number' }, `+${seconds(after)}`),
    h('abbr', { class: 'said-by', title: name }, letter),
    h('bdi', { class: 'mono' }, visible(text)));
}

/** @param {number} millis */
const seconds = (millis) => `${(millis / 1000).toFixed(3)} s`;
