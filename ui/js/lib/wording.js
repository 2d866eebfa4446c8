// The configuration of a server in words: what a reader would otherwise have to work out from a list of settings.

/** @import { Server, Status, Tls } from '../types.js' */

import { count, duration, plural, size } from './format.js';

/** @typedef {{ title: string, sentences: string[] }} Chapter */

/**
 * @param {Status} status
 * @param {Server | null} server Null when it could not be asked.
 * @returns {Chapter[]}
 */
export function inWords(status, server) {
  const { 'smtp-config': smtp } = status;
  return [
    { title: 'Receiving', sentences: [accepted(smtp), ...refusedSenders(smtp), ...discarded(smtp), ...limits(server)] },
    { title: 'Keeping', sentences: kept(status['storage-config']) },
    { title: 'Mailboxes', sentences: server ? [NAMING[server['mailbox-naming']] ?? '', server['monitor-visible'] ? 'Everybody who opens this page sees all mailboxes and the monitor.' : 'A mailbox is seen by those who know its name: the list of all and the monitor are switched off.'].filter(Boolean) : [] },
    { title: 'Listening', sentences: listeners(status, server) },
    { title: 'Script and webhooks', sentences: server ? extensions(server) : [] },
  ].filter(({ sentences }) => sentences.length > 0);
}

/** @param {Status['smtp-config']} smtp */
function accepted({ 'default-accept': all, 'accept-domains': accept, 'reject-domains': reject }) {
  if (all) return reject.length > 0 ? `Accepts mail for every domain except ${list(reject)}.` : 'Accepts mail for every domain.';
  return accept.length > 0 ? `Accepts mail for ${list(accept)} only.` : 'Accepts mail for no domain.';
}

/** @param {Status['smtp-config']} smtp */
function refusedSenders({ 'reject-origin-domains': origins }) {
  return origins.length > 0 ? [`Refuses senders of ${list(origins)}.`] : [];
}

/** @param {Status['smtp-config']} smtp */
function discarded({ 'default-store': all, 'store-domains': store, 'discard-domains': discard }) {
  if (all) return discard.length > 0 ? [`Takes mail for ${list(discard)} and throws it away.`] : [];
  return [store.length > 0 ? `Keeps mail for ${list(store)} only; other mail is taken and thrown away.` : 'Throws away all mail that it takes.'];
}

/** @param {Server | null} server */
function limits(server) {
  if (!server) return [];
  const { 'max-message-bytes': bytes, 'max-recipients': recipients } = server.smtp;
  return [`A message may have ${size(bytes)} and ${plural(recipients, 'recipient')}.`];
}

/** @param {Status['storage-config']} storage */
function kept({ 'mailbox-msg-cap': cap, 'store-type': type, 'retention-period': period }) {
  const millis = periodMillis(period);
  const most = cap > 0 ? `at most ${plural(cap, 'message')} per mailbox` : 'any number of messages per mailbox';
  const long = millis > 0 ? `for ${hours(millis)}` : 'until they are deleted';
  return [`Keeps ${most}, ${long}.`, STORES[type] ?? `Stores in ${type}.`];
}

/**
 * @param {Status} status
 * @param {Server | null} server
 */
function listeners(status, server) {
  const login = server?.smtp['auth-required'] ? ' A login is required.' : ' No login is needed.';
  const domain = server ? ` It calls itself ${server.smtp.domain}.` : '';
  return [
    `SMTP: ${places(status['smtp-config'].addr)}.${server ? TLS[server.smtp.tls] + login + domain : ''}`,
    `POP3: ${places(status['pop3-listener'])}.${server ? TLS[server.pop3.tls] : ''}`,
    `Web: ${places(status['web-listener'])}.`,
  ];
}

/** @param {Server} server */
function extensions({ script, webhooks }) {
  const verb = webhooks === 1 ? 'is' : 'are';
  return [
    script ? `The script ${script} takes part in the handling of mail.` : '',
    webhooks > 0 ? `${plural(webhooks, 'webhook')} ${verb} told of mail that is stored or deleted.` : '',
  ].filter(Boolean);
}

/** @type {Record<Tls, string>} */
const TLS = {
  off: ' Without TLS.',
  starttls: ' TLS is offered.',
  implicit: ' TLS from the first byte.',
};

/** @type {Record<Server['mailbox-naming'], string>} */
const NAMING = {
  local: 'A mailbox is named after what stands before the @: mail to james@example.org is in james.',
  full: 'A mailbox is named after the whole address: mail to james@example.org is in james@example.org.',
  domain: 'A mailbox is named after the domain: mail to james@example.org is in example.org.',
};

/** @type {Record<string, string>} */
const STORES = {
  memory: 'Stores in memory: everything is gone after a restart.',
  file: 'Stores on disk: mail outlives a restart.',
  postgres: 'Stores in PostgreSQL: mail outlives a restart, and several servers may share it.',
};

/**
 * `a`, `a and b`, `a, b and c`.
 * @param {string[]} names
 */
function list(names) {
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}

/** @param {string} addresses Separated by commas. */
function places(addresses) {
  const words = addresses.split(',').filter(Boolean).map((one) => (one.startsWith(':') ? `port ${one.slice(1)} on every address` : one));
  return words.length > 0 ? list(words) : 'not listening';
}

/** @param {string} period As in `24h0m0s`; empty is for ever. */
function periodMillis(period) {
  const units = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };
  let millis = 0;
  for (const [, value, unit] of period.matchAll(/([\d.]+)(ms|s|m|h)/gu)) millis += Number(value) * units[/** @type {keyof typeof units} */ (unit)];
  return millis;
}

/**
 * Two days and less are hours to people who set this.
 * @param {number} millis
 */
function hours(millis) {
  const whole = millis / 3_600_000;
  return Number.isInteger(whole) && whole <= 48 ? `${count(whole)} ${whole === 1 ? 'hour' : 'hours'}` : duration(millis);
}
