// <empty-mailbox>: what is shown instead of a list: that there is no mail yet and how to send some, or why there is no
// such mailbox.

import * as api from '../lib/api.js';
import { copy } from '../lib/clipboard.js';
import { fill, h } from '../lib/dom.js';
import { icon } from '../lib/icons.js';
import { SNIPPETS, target } from '../lib/snippets.js';

/** Which snippets are shown, of all there are. */
const SHOWN = ['swaks', 'curl'];
/** What a shell takes as it stands. Names can hold more than that, and nobody should be led to paste it. */
const PLAIN = /^\w[\w.+-]*@\w[\w.-]*$/u;

export class EmptyMailbox extends HTMLElement {
  #told = '';

  /**
   * Says that the mailbox is empty.
   * @param {string} mailbox
   */
  async invite(mailbox) {
    if (this.#told === `invite ${mailbox}`) return;
    this.#told = `invite ${mailbox}`;
    const server = await api.about().catch(() => null);
    if (this.#told !== `invite ${mailbox}`) return;
    const recipient = mailbox.includes('@') ? mailbox : server?.['mailbox-naming'] === 'domain' ? `anyone@${mailbox}` : `${mailbox}@example.org`;
    const to = target(location.hostname, server, recipient);
    const snippets = PLAIN.test(recipient) ? SNIPPETS.filter(({ id }) => SHOWN.includes(id)) : [];
    fill(
      this,
      h('div', { class: 'empty' },
        icon('envelope'),
        h('h2', {}, 'This mailbox is empty'),
        h('p', {}, 'Send something to ', h('code', {}, recipient), ' by SMTP at ', h('code', {}, to.host), ' port ', h('code', {}, to.port), '. It appears here by itself.'),
        snippets.map(({ name, code }) => command(name, code(to))),
      ),
    );
  }

  /**
   * Says why the server knows no such mailbox.
   * @param {string} sentence
   */
  refuse(sentence) {
    this.#told = 'refused';
    fill(
      this,
      h('div', { class: 'empty' },
        icon('warning'),
        h('h2', {}, 'There is no mailbox of this name'),
        h('p', { role: 'alert' }, sentence),
        h('p', {}, 'A name is what stands before the @ of an address, such as ', h('code', {}, 'james'), ', or a whole address. Press ', h('kbd', {}, 'o'), ' to open another one.'),
      ),
    );
  }

  /**
   * Says that the list does not come.
   * @param {string} sentence
   * @param {() => void} again
   */
  fail(sentence, again) {
    if (this.#told === sentence) return;
    this.#told = sentence;
    fill(
      this,
      h('div', { class: 'empty' },
        icon('warning'),
        h('h2', {}, 'The list could not be loaded'),
        h('p', { role: 'alert' }, sentence),
        h('p', {}, 'It is tried again every few seconds.'),
        h('button', { class: 'button', type: 'button', onclick: again }, 'Try now'),
      ),
    );
  }
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
