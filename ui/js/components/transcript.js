// The details and the transcript of a session. Texts of clients are always inserted as text.

/** @import { TranscriptLine, Session, Transaction, Transcript } from '../types.js' */

import * as paths from '../lib/paths.js';
import { h } from '../lib/dom.js';
import { exact, plural } from '../lib/format.js';
import { visible } from '../lib/visible.js';
import { withShowMore } from './message/show-more.js';
import { TimeAgo } from './time-ago.js';

const FIRST_LINES = 300;
const FIRST_MAILS = 20;
const FIRST_RECIPIENTS = 20;

/** A reply that refuses something. */
const REFUSAL = /^(HTTP )?[45]\d\d/u;

/** @type {Record<string, string>} */
const ENDINGS = {
  quit: 'the client sent QUIT',
  left: 'the client disconnected without QUIT',
  timeout: 'timeout: the client sent nothing',
  errors: 'too many errors of the client',
  tls: 'the TLS handshake failed',
  refused: 'too many connections',
  shutdown: 'the server was shut down',
  done: 'the response was sent',
  lost: 'the server terminated before the session ended',
};

/** @param {Transcript} transcript */
export function transcript({ session, lines }) {
  const wrap = (/** @type {HTMLButtonElement} */ button) => h('li', {}, button);
  const missing = (session['transaction-count'] ?? 0) - session.transactions.length;
  return h('div', { class: 'transcript' },
    facts(session),
    missing > 0 && h('p', { class: 'note session-missing' }, `The start of this session, with ${plural(missing, 'message')}, is no longer stored.`),
    h('ul', { class: 'session-mails', 'aria-label': 'Messages' }, withShowMore(session.transactions, mail, { first: FIRST_MAILS, wrap })),
    transcriptLines(lines));
}

/**
 * Returns the lines of a session, in which each party has a letter.
 * @param {TranscriptLine[]} lines
 */
export function transcriptLines(lines) {
  const wrap = (/** @type {HTMLButtonElement} */ button) => h('li', {}, button);
  return h('ol', { class: 'transcript-lines', 'aria-label': 'Transcript' }, withShowMore(lines, line, { first: FIRST_LINES, wrap }));
}

/**
 * Returns the address of the client and its HELO name.
 * @param {Session} session
 */
export function client({ client, helo }) {
  return [h('span', {}, client ?? 'local socket'), helo !== null && h('bdi', { class: 'soft' }, visible(helo))];
}

/** @param {Session} session */
function facts(session) {
  const { protocol, tls, user, ending, 'started-millis': started, 'ended-millis': ended } = session;
  const lasted = ended === null ? 'still open' : `after ${seconds(ended - started)}`;
  /** @type {[string, (Node | string | false)[]][]} */
  const known = [
    ['Client', client(session)],
    ['Started', [TimeAgo.create(started, exact)]],
    ['Ended', [ending === null ? lasted : `${lasted}: ${ENDINGS[ending] ?? visible(ending)}`]],
    ['Encryption', [tls ? `${visible(tls.version)}, ${visible(tls.cipher)}` : 'none']],
    ['Login', user === null ? ['none'] : [h('bdi', {}, visible(user))]],
    ['Protocol', [protocol.toUpperCase()]],
  ];
  return h('dl', { class: 'session-facts' }, known.map(([name, words]) => h('div', {}, h('dt', {}, name), h('dd', {}, ...words))));
}

/** @param {Transaction} mail */
function mail({ from, to, parameters, outcome, reply, messages }) {
  const parameter = (/** @type {string} */ text) => text !== '' && h('bdi', { class: 'mono session-parameters' }, visible(text));
  const wrap = (/** @type {HTMLButtonElement} */ button) => h('li', {}, button);
  const recipients = to.map((address, at) => ({ address, more: parameters.rcpt[at] ?? '' }));
  return h('li', { class: 'session-mail' },
    h('div', { class: 'session-from' }, h('span', { class: 'soft' }, 'Mail from '), h('bdi', {}, visible(from) || '<>'), parameter(parameters.mail)),
    h('ul', {}, withShowMore(recipients, ({ address, more }) => h('li', {}, h('span', { class: 'soft' }, 'to '), h('bdi', {}, visible(address)), parameter(more)), { first: FIRST_RECIPIENTS, wrap })),
    h('div', { class: 'session-outcome' }, h('span', { class: `badge ${outcome}` }, outcome), reply !== null && h('bdi', { class: 'mono' }, visible(reply)),
      messages.slice(0, FIRST_RECIPIENTS).map(({ mailbox, id }) => h('a', { href: paths.mailbox(mailbox, id) }, h('bdi', {}, visible(mailbox))))));
}

/** @param {TranscriptLine} line */
function line({ from, text, 'after-millis': after }) {
  const [letter, name] = from === 'client' ? ['C', 'Client'] : ['S', 'Server'];
  return h('li', { class: `transcript-${from === 'client' ? 'client' : 'server'}${from === 'server' && REFUSAL.test(text) ? ' refusal' : ''}` },
    h('span', { class: 'transcript-time soft number' }, `+${seconds(after)}`),
    h('abbr', { class: 'transcript-party', title: name }, letter),
    h('bdi', { class: 'mono' }, visible(text)));
}

/** @param {number} millis */
const seconds = (millis) => `${(millis / 1000).toFixed(3)} s`;
