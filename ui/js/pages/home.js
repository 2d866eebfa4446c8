// The page `/`: open a mailbox, see which ones there are, and learn how to send mail here.

import * as api from '../lib/api.js';
import { fill, h } from '../lib/dom.js';
import { greet } from '../lib/greeting.js';
import { title } from '../lib/title.js';
import '../components/mailbox-list.js';
import '../components/open-mailbox.js';
import '../components/send-here.js';

/** How long the rest of the page waits for what stands above it. */
const PATIENCE = 1_000;

export class HomePage extends HTMLElement {
  async connectedCallback() {
    title('');
    const greeting = h('section', { class: 'greeting', 'aria-label': 'Greeting', hidden: true });
    const rest = h('div', { class: 'home-rest' });
    const page = h('div', { class: 'page home' }, document.createElement('open-mailbox'), greeting);
    fill(this, page);
    const there = Promise.all([greet(greeting), api.about().catch(() => null)]);
    await Promise.race([there, new Promise((done) => setTimeout(done, PATIENCE))]);
    if (!this.isConnected) return;
    fill(rest, document.createElement('mailbox-list'), document.createElement('send-here'));
    // A greeting that comes later comes below, so that nothing moves.
    if (greeting.hidden) greeting.before(rest);
    else greeting.after(rest);
  }
}

customElements.define('home-page', HomePage);
