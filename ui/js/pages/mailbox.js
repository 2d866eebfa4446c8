// The page mailbox.

/** @import { Route } from '../types.js' */

import { fill, h } from '../lib/dom.js';
import { title } from '../lib/title.js';

export class MailboxPage extends HTMLElement {
  /** @type {Route} */
  route = { page: 'missing' };

  connectedCallback() {
    title('Mailbox');
    fill(this, h('div', { class: 'page' }, h('h1', {}, 'Mailbox')));
  }
}

customElements.define('mailbox-page', MailboxPage);
