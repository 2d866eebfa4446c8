// The page `/send`: how to send messages to this server, and a field that opens a mailbox.

import { fill, h } from '../lib/dom.js';
import { title } from '../lib/title.js';
import '../components/get-started.js';
import '../components/open-mailbox.js';

export class SendPage extends HTMLElement {
  connectedCallback() {
    title('Send mail here');
    fill(this, h('div', { class: 'page send' },
      h('h1', {}, 'Send mail here'),
      document.createElement('get-started'),
      document.createElement('open-mailbox')));
  }
}

customElements.define('send-page', SendPage);
