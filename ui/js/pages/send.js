// The page `/send`: how to send messages to this server, and a field that opens a mailbox.

import { fill, h } from '../lib/dom.js';
import { title } from '../lib/title.js';
import { pageHead } from '../components/page-head.js';
import '../components/get-started.js';
import '../components/open-mailbox.js';

export class SendPage extends HTMLElement {
  connectedCallback() {
    title('Connect your app');
    fill(this, h('div', { class: 'page send' },
      pageHead('Connect your app'),
      document.createElement('get-started'),
      document.createElement('open-mailbox')));
  }
}

customElements.define('send-page', SendPage);
