// <send-here>: how a program is told to send its mail to this server, and how mail is fetched from it by POP3.

/** @import { Server } from '../types.js' */
/** @import { Snippet } from '../lib/snippets.js' */

import * as api from '../lib/api.js';
import * as paths from '../lib/paths.js';
import * as prefs from '../lib/prefs.js';
import * as connection from '../lib/connection.js';
import { copy } from '../lib/clipboard.js';
import { fill, h } from '../lib/dom.js';
import { icon } from '../lib/icons.js';
import { GROUPS, RECIPIENT, SNIPPETS, USUAL_PORT, isLocal, mailboxOf, target } from '../lib/snippets.js';

export class SendHere extends HTMLElement {
  /** @type {Server | null} */
  #server = null;
  /** @type {AbortController | null} */
  #life = null;
  #code = h('pre', { class: 'snippet-code', tabindex: 0, 'aria-label': 'Snippet' });
  #place = h('span', { class: 'snippet-place soft cut' });
  #hints = h('div', { class: 'snippet-hints' });
  #choice = h('select', { class: 'field', 'aria-label': 'Tool or framework', onchange: () => this.#chosen() },
    GROUPS.map(({ name, snippets }) => h('optgroup', { label: name }, snippets.map((one) => h('option', { value: one.id }, one.name)))));

  connectedCallback() {
    const life = this.#life = new AbortController();
    const copyButton = h('button', { class: 'button small', type: 'button', onclick: () => copy(this.#code.textContent ?? '') }, icon('copy'), 'Copy');
    fill(this,
      h('h2', { id: 'send-here' }, 'Send mail here'),
      h('section', { class: 'sheet snippet', 'aria-labelledby': 'send-here' },
        h('div', { class: 'snippet-head' }, this.#choice, this.#place, copyButton),
        this.#code,
        this.#hints));
    const before = prefs.read('snippet', SNIPPETS[0].id);
    if (SNIPPETS.some(({ id }) => id === before)) this.#choice.value = before;
    // After a loss it may be another server.
    connection.changes.addEventListener('change', () => connection.isLost() || this.#ask(), { signal: life.signal });
    this.#ask();
  }

  disconnectedCallback() {
    this.#life?.abort();
  }

  async #ask() {
    this.#server = await api.about().catch(() => null);
    this.#draw();
  }

  #chosen() {
    prefs.write('snippet', this.#choice.value);
    this.#draw();
  }

  #draw() {
    const { id, place, code } = /** @type {Snippet} */ (SNIPPETS.find(({ id }) => id === this.#choice.value));
    this.#place.textContent = place;
    this.#place.title = place;
    this.#code.textContent = code(target(location.hostname, this.#server));
    this.#code.scrollLeft = 0;
    fill(this.#hints, this.#server ? hints(this.#server) : h('p', { class: 'note warn' }, icon('warning'),
      `The server could not be asked for its port; ${USUAL_PORT} is only the usual one.`));
    if (id === 'docker' && isLocal(location.hostname)) this.#lookForLoopback();
  }

  /** A container cannot reach a server that listens to its own machine only. */
  async #lookForLoopback() {
    const status = await api.status(this.#life?.signal).catch(() => null);
    const places = status?.['smtp-config'].addr.split(',') ?? [];
    if (this.#choice.value !== 'docker' || this.#hints.querySelector('.loopback') || places.length === 0) return;
    if (!places.every((place) => isLocal(place.replace(/:\d+$/u, '')))) return;
    this.#hints.prepend(h('p', { class: 'note warn loopback' }, icon('warning'),
      h('span', {}, `The server listens on ${places.join(' and ')} only, where a container cannot reach it. Start it with `, h('code', {}, `--smtp-addr :${this.#server?.smtp.port ?? USUAL_PORT}`), '.')));
  }
}

/**
 * What there is to know besides the snippet itself.
 * @param {Server} server
 */
function hints({ smtp, pop3, 'mailbox-naming': naming }) {
  const mailbox = mailboxOf(naming);
  const host = location.hostname;
  return [
    smtp.port === null && h('p', { class: 'note warn' }, icon('warning'),
      h('span', {}, `The server has no TCP port for SMTP; ${USUAL_PORT} only stands in its place. The `, h('a', { href: paths.status() }, 'status page'), ' says where it listens.')),
    smtp['auth-required'] && h('p', { class: 'note' }, icon('shield'), 'Mail is taken after a login only: put the user and the password of this server in.'),
    smtp.tls !== 'off' && h('p', { class: 'note' }, icon('shield'), h('span', {}, TLS_HINTS[smtp.tls])),
    h('p', { class: 'soft' }, 'Mail to ', h('span', { class: 'mono' }, RECIPIENT), ' arrives in the mailbox ', h('a', { href: paths.mailbox(mailbox) }, mailbox),
      '. Mailboxes need not be made before.'),
    pop3.port !== null && h('p', { class: 'soft' }, 'Fetch mail by POP3 from ', h('span', { class: 'mono' }, `${host}:${pop3.port}`),
      `${pop3.tls === 'implicit' ? ' with TLS' : ''}; the user is the name of the mailbox.`),
  ];
}

const CERTIFICATE = 'A client that checks the certificate has to trust it, should it be self-signed.';
const TLS_HINTS = {
  off: '',
  starttls: `STARTTLS is offered, not required. ${CERTIFICATE}`,
  implicit: `SMTP speaks TLS from the first byte here. ${CERTIFICATE}`,
};

customElements.define('send-here', SendHere);
