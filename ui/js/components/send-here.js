// <send-here>: snippets that configure a program to send to this server by SMTP or with the API of a mail provider, and how to fetch
// messages by POP3 and IMAP.

/** @import { Server, Status } from '../types.js' */
/** @import { Snippet } from '../lib/snippets.js' */

import * as api from '../lib/api.js';
import * as paths from '../lib/paths.js';
import * as prefs from '../lib/prefs.js';
import * as connection from '../lib/connection.js';
import { copy } from '../lib/clipboard.js';
import { expiry } from '../lib/config-text.js';
import { fill, h } from '../lib/dom.js';
import { icon } from '../lib/icons.js';
import { GROUPS, RECIPIENT, SNIPPETS, DEFAULT_PORT, isLocal, mailboxOf, serverPlace, target } from '../lib/snippets.js';

export class SendHere extends HTMLElement {
  /** @type {Server | null} */
  #server = null;
  /** @type {Status | null} */
  #status = null;
  /** Aborted when the element is removed. */
  #disconnected = new AbortController();
  #code = h('pre', { class: 'snippet-code', tabindex: 0, 'aria-label': 'Snippet' });
  #context = h('span', { class: 'snippet-context soft truncate' });
  #hints = h('div', { class: 'snippet-hints' });
  #choice = h('select', { class: 'field', 'aria-label': 'Tool or framework', onchange: () => this.#chosen() },
    GROUPS.map(({ name, snippets }) => h('optgroup', { label: name }, snippets.map((one) => h('option', { value: one.id }, one.name)))));

  connectedCallback() {
    const { signal } = this.#disconnected = new AbortController();
    const copyButton = h('button', { class: 'button small', type: 'button', onclick: () => copy(this.#code.textContent ?? '') }, icon('copy'), 'Copy');
    fill(this,
      h('h2', { id: 'send-here' }, 'Settings for sending'),
      h('section', { class: 'sheet snippet', 'aria-labelledby': 'send-here' },
        h('div', { class: 'snippet-head' }, this.#choice, this.#context, copyButton),
        this.#code,
        this.#hints));
    const before = prefs.read('snippet', SNIPPETS[0].id);
    if (SNIPPETS.some(({ id }) => id === before)) this.#choice.value = before;
    // After a reconnect the server may have another configuration.
    connection.changes.addEventListener('change', () => connection.isLost() || this.#load(), { signal });
    this.#load();
  }

  disconnectedCallback() {
    this.#disconnected.abort();
  }

  async #load() {
    [this.#server, this.#status] = await Promise.all([api.about().catch(() => null), api.status(this.#disconnected.signal).catch(() => null)]);
    this.#draw();
  }

  #chosen() {
    prefs.write('snippet', this.#choice.value);
    this.#draw();
  }

  #draw() {
    const { id, context, isHttp, code } = /** @type {Snippet} */ (SNIPPETS.find(({ id }) => id === this.#choice.value));
    this.#context.textContent = context;
    this.#context.title = context;
    this.#code.textContent = code(target(serverPlace(), this.#server));
    this.#code.scrollLeft = 0;
    fill(this.#hints, id === 'docker' && isLocal(location.hostname) && this.#loopbackWarning(), ...(this.#server ? hints(this.#server, this.#status, isHttp) : [h('p', { class: 'note warn' }, icon('warning'),
      `The port of the server could not be loaded, so the snippet shows the default port ${DEFAULT_PORT}.`)]));
  }

  /** Returns a warning if the server listens on loopback addresses only, which a container cannot reach. */
  #loopbackWarning() {
    const addresses = this.#status?.['smtp-config'].addr.split(',') ?? [];
    if (addresses.length === 0 || !addresses.every((address) => isLocal(address.replace(/:\d+$/u, '')))) return null;
    return h('p', { class: 'note warn loopback' }, icon('warning'),
      h('span', {}, `The server listens on ${addresses.join(' and ')} only. Containers cannot reach this address. Start the server with `, h('code', {}, `--smtp-addr :${this.#server?.smtp.port ?? DEFAULT_PORT}`), '.'));
  }
}

/**
 * Returns notes about the snippet.
 * @param {Server} server
 * @param {Status | null} status
 * @param {boolean} [isHttp] Whether the snippet is for the API of a mail provider.
 */
function hints({ smtp, pop3, imap, locked, 'mailbox-naming': naming }, status, isHttp = false) {
  const mailbox = mailboxOf(naming);
  if (isHttp) return [locked && h('p', { class: 'note' }, icon('shield'), 'The server requires a login. Replace TOKEN with a token of this server.'), stored(mailbox, status)];
  return [
    smtp.port === null && h('p', { class: 'note warn' }, icon('warning'),
      h('span', {}, `The server does not listen on a TCP port for SMTP, so the snippet shows the default port ${DEFAULT_PORT}. The `, h('a', { href: paths.status() }, 'status page'), ' shows where it listens.')),
    smtp['auth-required'] && h('p', { class: 'note' }, icon('shield'), 'SMTP requires a login. Replace USER and PASSWORD with a user and password of this server.'),
    smtp.tls !== 'off' && h('p', { class: 'note' }, icon('shield'), h('span', {}, TLS_HINTS[smtp.tls])),
    stored(mailbox, status),
    fetching('POP3', pop3),
    fetching('IMAP', imap),
  ];
}

/**
 * Returns how to read the messages with a mail program.
 * @param {string} protocol
 * @param {Server['imap']} listener
 */
const fetching = (protocol, { port, tls }) => port !== null && h('p', { class: 'soft' }, `To fetch messages by ${protocol}, connect to `,
  h('span', { class: 'mono' }, `${location.hostname}:${port}`), `${tls === 'implicit' ? ' with TLS' : ''}. The user name is the name of the mailbox.`);

/**
 * @param {string} mailbox
 * @param {Status | null} status
 */
const stored = (mailbox, status) => h('p', { class: 'soft' }, 'Messages to ', h('span', { class: 'mono' }, RECIPIENT), ' are stored in the mailbox ', h('a', { href: paths.mailbox(mailbox) }, mailbox),
  `. You do not need to create mailboxes.${status ? ` ${expiry(status['storage-config']['retention-period'])}` : ''}`);

const CERTIFICATE = 'If the certificate is self-signed, the client must trust it or skip the check.';
const TLS_HINTS = {
  off: '',
  starttls: `STARTTLS is available but not required. ${CERTIFICATE}`,
  implicit: `SMTP uses implicit TLS on this server. ${CERTIFICATE}`,
};

customElements.define('send-here', SendHere);
