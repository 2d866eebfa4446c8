// Describes the configuration of a server in sentences.

/** @import { Server, Status, Tls } from '../types.js' */

import { count, duration, plural, size } from './format.js';

/** @typedef {{ title: string, sentences: string[] }} Section */

/**
 * @param {Status} status
 * @param {Server | null} server Null if the request failed.
 * @returns {Section[]}
 */
export function describeConfig(status, server) {
  const { 'smtp-config': smtp } = status;
  return [
    { title: 'Receiving', sentences: [acceptedDomains(smtp), ...refusedSenders(smtp), ...discardedDomains(smtp), ...limits(server)] },
    { title: 'Storage', sentences: storage(status['storage-config']) },
    { title: 'Mailboxes', sentences: server ? [NAMING[server['mailbox-naming']] ?? '', server['monitor-visible'] ? 'Everyone who can open this page sees the inbox and all mailboxes.' : 'The inbox and the list of mailboxes are disabled. A mailbox can be opened by its name.'].filter(Boolean) : [] },
    { title: 'Listeners', sentences: listeners(status, server) },
    { title: 'Script and webhooks', sentences: server ? extensions(server) : [] },
  ].filter(({ sentences }) => sentences.length > 0);
}

/** @param {Status['smtp-config']} smtp */
function acceptedDomains({ 'default-accept': all, 'accept-domains': accept, 'reject-domains': reject }) {
  if (all) return reject.length > 0 ? `Accepts messages for all domains except ${list(reject)}.` : 'Accepts messages for all domains.';
  return accept.length > 0 ? `Accepts messages for ${list(accept)} only.` : 'Rejects messages for all domains.';
}

/** @param {Status['smtp-config']} smtp */
function refusedSenders({ 'reject-origin-domains': origins }) {
  return origins.length > 0 ? [`Rejects senders from ${list(origins)}.`] : [];
}

/** @param {Status['smtp-config']} smtp */
function discardedDomains({ 'default-store': all, 'store-domains': store, 'discard-domains': discard }) {
  if (all) return discard.length > 0 ? [`Accepts and discards messages for ${list(discard)}.`] : [];
  return [store.length > 0 ? `Stores messages for ${list(store)} only. Other messages are accepted and discarded.` : 'Accepts and discards all messages.'];
}

/** @param {Server | null} server */
function limits(server) {
  if (!server) return [];
  const { 'max-message-bytes': bytes, 'max-recipients': recipients } = server.smtp;
  return [`A message can have up to ${size(bytes)} and ${plural(recipients, 'recipient')}.`];
}

/** @param {Status['storage-config']} storage */
function storage({ 'mailbox-msg-cap': cap, 'store-type': type, 'retention-period': period }) {
  const most = cap > 0 ? `at most ${plural(cap, 'message')} per mailbox` : 'any number of messages per mailbox';
  return [`Stores ${most}.`, expiry(period), STORES[type] ?? `Storage: ${type}.`];
}

/** @param {string} period As in `24h0m0s`; empty for unlimited. */
export function expiry(period) {
  const millis = periodMillis(period);
  return millis > 0 ? `Messages expire after ${hours(millis)}.` : 'Messages do not expire.';
}

/**
 * @param {Status} status
 * @param {Server | null} server
 */
function listeners(status, server) {
  const login = server?.smtp['auth-required'] ? ' A login is required.' : ' No login is required.';
  const domain = server ? ` Its name in replies is ${server.smtp.domain}.` : '';
  return [
    `SMTP: ${listenAddresses(status['smtp-config'].addr)}.${server ? TLS[server.smtp.tls] + login + domain : ''}`,
    `POP3: ${listenAddresses(status['pop3-listener'])}.${server ? TLS[server.pop3.tls] : ''}`,
    `IMAP: ${listenAddresses(status['imap-listener'])}.${server ? TLS[server.imap.tls] : ''}`,
    `Web: ${listenAddresses(status['web-listener'])}.`,
  ];
}

/** @param {Server} server */
function extensions({ script, webhooks }) {
  const verb = webhooks === 1 ? 'is' : 'are';
  return [
    script ? `The script ${script} handles events.` : '',
    webhooks > 0 ? `${plural(webhooks, 'webhook')} ${verb} called when a message is stored or deleted.` : '',
  ].filter(Boolean);
}

/** @type {Record<Tls, string>} */
const TLS = {
  off: ' TLS is off.',
  starttls: ' TLS is optional (STARTTLS).',
  implicit: ' TLS is required from the start (implicit TLS).',
};

/** @type {Record<Server['mailbox-naming'], string>} */
const NAMING = {
  local: 'A mailbox is named after the part before the @: a message to james@example.org is in james.',
  full: 'A mailbox is named after the whole address: a message to james@example.org is in james@example.org.',
  domain: 'A mailbox is named after the domain: a message to james@example.org is in example.org.',
};

/** @type {Record<string, string>} */
const STORES = {
  memory: 'Storage in memory: all messages are lost when the server stops.',
  file: 'Storage on disk: messages are kept across restarts.',
  postgres: 'Storage in PostgreSQL: messages are kept across restarts, and several servers can share them.',
};

/**
 * `a`, `a and b`, `a, b and c`.
 * @param {string[]} names
 */
function list(names) {
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}

/** @param {string} addresses Separated by commas. */
function listenAddresses(addresses) {
  const words = addresses.split(',').filter(Boolean).map((one) => (one.startsWith(':') ? `port ${one.slice(1)} on all addresses` : one));
  return words.length > 0 ? list(words) : 'not listening';
}

/** @param {string} period As in `24h0m0s`; empty for unlimited. */
function periodMillis(period) {
  const units = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };
  let millis = 0;
  for (const [, value, unit] of period.matchAll(/([\d.]+)(ms|s|m|h)/gu)) millis += Number(value) * units[/** @type {keyof typeof units} */ (unit)];
  return millis;
}

/**
 * Formats a period: up to 48 hours in hours, as it is usually configured.
 * @param {number} millis
 */
function hours(millis) {
  const whole = millis / 3_600_000;
  return Number.isInteger(whole) && whole <= 48 ? `${count(whole)} ${whole === 1 ? 'hour' : 'hours'}` : duration(millis);
}
