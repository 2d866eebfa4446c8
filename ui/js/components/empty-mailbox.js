// <empty-mailbox>: what is shown instead of a list: that there is no mail yet and how to send some, or why there is no
// such mailbox. The event `again` asks for another attempt.

/** @import { Messages } from '../lib/messages.js' */
/** @import { Server } from '../types.js' */

import * as api from '../lib/api.js';
import { copy } from '../lib/clipboard.js';
import { fill, h } from '../lib/dom.js';
import { icon } from '../lib/icons.js';
import { SNIPPETS, target } from '../lib/snippets.js';
import { visible } from '../lib/visible.js';
import { testMail } from './test-mail.js';

/** Which snippets are shown, of all there are. */
const SHOWN = ['swaks', 'curl'];
/** What a shell takes as it stands. Names can hold more than that, and nobody should be led to paste it. */
const PLAIN = /^\w[\w.+-]*@\w[\w.-]*$/u;

/** What a mailbox is called. @type {Record<Server['mailbox-naming'], [string, string, string]>} */
const NAMES = {
  local: ['A name is what stands before the @ of an address, such as ', 'james', ', or a whole address.'],
  full: ['A name is a whole address here, such as ', 'james@example.org', '.'],
  domain: ['A name is what stands after the @ of an address here, such as ', 'example.org', ', or a whole address.'],
};

export class EmptyMailbox extends HTMLElement {
  #told = '';

  /**
   * Says why there is no list, and shows itself only then. Returns whether it does.
   * @param {Messages} messages
   */
  show({ state, error, entries, mailbox }) {
    const isNeeded = entries.length === 0 && (state !== 'waiting' || error !== null);
    this.hidden = !isNeeded;
    if (!isNeeded) return false;
    if (state === 'refused') this.#refuse(api.sentence(error));
    else if (state !== 'waiting') this.#invite(mailbox);
    else this.#fail(api.sentence(error));
    return true;
  }

  /**
   * Says that the mailbox is empty.
   * @param {string} mailbox
   */
  #invite(mailbox) {
    return this.#tell(`invite ${mailbox}`, (server) => {
      const naming = server?.['mailbox-naming'];
      if (naming === 'full' && !mailbox.includes('@')) return [icon('envelope'), h('h2', {}, 'This mailbox is empty'), h('p', {}, 'No mail arrives under this name. ', ...hint(naming))];
      const recipient = mailbox.includes('@') ? mailbox : naming === 'domain' ? `anyone@${mailbox}` : `${mailbox}@example.org`;
      const to = target(location.hostname, server, recipient);
      const snippets = PLAIN.test(recipient) ? SNIPPETS.filter(({ id }) => SHOWN.includes(id)) : [];
      return [
        icon('envelope'),
        h('h2', {}, 'This mailbox is empty'),
        h('p', {}, 'Send something to ', h('code', {}, visible(recipient)), ' by SMTP at ', h('code', { class: 'whole' }, `${to.host.includes(':') ? `[${to.host}]` : to.host}:${to.port}`), '. It appears here by itself.'),
        ...snippets.map(({ name, code }) => command(name, code(to))),
        testMail(mailbox),
      ];
    });
  }

  /**
   * Says why the server knows no such mailbox.
   * @param {string} sentence
   */
  #refuse(sentence) {
    return this.#tell(`refuse ${sentence}`, (server) => [
      icon('warning'),
      h('h2', {}, 'There is no mailbox of this name'),
      h('p', { role: 'alert' }, sentence),
      h('p', {}, ...hint(server?.['mailbox-naming'] ?? 'local')),
    ]);
  }

  /**
   * Says something that depends on the server, once.
   * @param {string} what
   * @param {(server: Server | null) => Element[]} words
   */
  async #tell(what, words) {
    if (this.#told === what) return;
    this.#told = what;
    const server = await api.about().catch(() => null);
    if (this.#told === what) fill(this, h('div', { class: 'empty' }, words(server)));
  }

  /**
   * Says that the list does not come.
   * @param {string} sentence
   */
  #fail(sentence) {
    if (this.#told === sentence) return;
    this.#told = sentence;
    fill(
      this,
      h('div', { class: 'empty' },
        icon('warning'),
        h('h2', {}, 'The list could not be loaded'),
        h('p', { role: 'alert' }, sentence),
        h('p', {}, 'It is tried again every few seconds.'),
        h('button', { class: 'button', type: 'button', onclick: () => this.dispatchEvent(new Event('again', { bubbles: true })) }, 'Try now'),
      ),
    );
  }
}

/** @param {Server['mailbox-naming']} naming */
function hint(naming) {
  const [before, example, after] = NAMES[naming];
  return [before, h('code', {}, example), `${after} Press `, h('kbd', {}, 'o'), ' to open another one.'];
}

/**
 * @param {string} name
 * @param {string} line
 */
function command(name, line) {
  return h('div', { class: 'command' },
    h('pre', { tabindex: 0, 'aria-label': `Command for ${name}` }, line),
    h('button', { class: 'button plain small', type: 'button', 'aria-label': `Copy the command for ${name}`, title: 'Copy', onclick: () => copy(line) }, icon('copy')));
}

customElements.define('empty-mailbox', EmptyMailbox);
