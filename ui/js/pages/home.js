// The page `/`: opens a mailbox, lists the mailboxes, and shows how to send messages to the server.

import * as api from '../lib/api.js';
import { fill, h } from '../lib/dom.js';
import { showGreeting } from '../lib/greeting.js';
import { title } from '../lib/title.js';
import '../components/mailbox-list.js';
import '../components/open-mailbox.js';
import '../components/send-here.js';

/** The maximum time that the rest of the page waits for the content above it. */
const MAX_WAIT_MS = 1_000;

export class HomePage extends HTMLElement {
  async connectedCallback() {
    title('');
    const greeting = h('section', { class: 'greeting', 'aria-label': 'Greeting', hidden: true });
    const rest = h('div', { class: 'home-rest' });
    const page = h('div', { class: 'page home' }, document.createElement('open-mailbox'), greeting);
    fill(this, page);
    const loaded = Promise.all([showGreeting(greeting), api.about().catch(() => null)]);
    await Promise.race([loaded, new Promise((done) => setTimeout(done, MAX_WAIT_MS))]);
    if (!this.isConnected) return;
    fill(rest, document.createElement('mailbox-list'), document.createElement('send-here'));
    // A late greeting is shown below, so that nothing moves.
    if (greeting.hidden) greeting.before(rest);
    else greeting.after(rest);
  }
}

customElements.define('home-page', HomePage);
