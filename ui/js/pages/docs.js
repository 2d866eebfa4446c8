// The page `/api/docs`: the operations of the REST API, from its OpenAPI document, with a console that sends requests.

/** @import { Document } from '../components/docs/document.js' */
/** @import { Route } from '../types.js' */

import * as api from '../lib/api.js';
import * as paths from '../lib/paths.js';
import { fill, h, set } from '../lib/dom.js';
import { icon } from '../lib/icons.js';
import { fold, matcher } from '../lib/filter.js';
import { title } from '../lib/title.js';
import { chapters, paragraphs, prose } from '../components/docs/document.js';
import { operationView } from '../components/docs/operation.js';
import { schemaView } from '../components/docs/schema.js';
import { pageHead } from '../components/page-head.js';

export class DocsPage extends HTMLElement {
  /** @type {Route} */
  #route = { page: 'missing' };
  #disconnected = new AbortController();
  #version = h('span', { class: 'soft' });
  #filter = h('input', { class: 'field', type: 'search', placeholder: 'Filter operations', 'aria-label': 'Filter operations', oninput: () => this.#applyFilter() });
  #contents = h('nav', { class: 'docs-contents', 'aria-label': 'Operations' });
  #main = h('div', { class: 'docs-main' }, h('p', { class: 'soft' }, 'Loading…'));

  get route() {
    return this.#route;
  }

  set route(route) {
    this.#route = route;
    if (this.isConnected) this.#reveal();
  }

  async connectedCallback() {
    const { signal } = this.#disconnected = new AbortController();
    title('API docs');
    fill(this, h('div', { class: 'page docs' },
      pageHead('API docs', this.#version, h('span', { class: 'spread' }), h('a', { class: 'button', href: paths.serverPath('api', 'openapi.json') }, 'openapi.json')),
      h('div', { class: 'docs-columns' }, h('div', { class: 'docs-side' }, this.#filter, this.#contents), this.#main)));
    try {
      const document = await api.description(signal);
      if (!signal.aborted) this.#draw(document);
    } catch (error) {
      if (!signal.aborted) fill(this.#main, h('p', { class: 'note bad', role: 'alert' }, icon('warning'), api.sentence(error)));
    }
  }

  disconnectedCallback() {
    this.#disconnected.abort();
  }

  /** @param {Document} document */
  #draw(document) {
    const { info, components } = document;
    const all = chapters(document);
    const [introduction, ...conventions] = paragraphs(info.description);
    this.#version.textContent = `Version ${info.version}`;
    fill(this.#contents, all.map(({ name, operations }) => h('section', {}, h('h2', {}, name), h('ul', {}, operations.map(({ id, method, path, summary }) => h('li', {},
      h('a', { href: `#${id}`, title: `${method.toUpperCase()} ${path}` }, h('span', { class: `method ${method}` }, method === 'delete' ? 'del' : method), h('span', {}, summary))))))));
    fill(this.#main, introduction,
      ...all.map(({ name, description, operations }) => h('section', {}, h('h2', {}, name), ...paragraphs(description), h('div', { class: 'docs-list sheet' }, operations.map((operation) => operationView(operation, document, this.#disconnected.signal))))),
      h('section', { id: 'conventions' }, h('h2', {}, 'Conventions'), ...conventions),
      h('section', { id: 'credentials' }, h('h2', {}, 'Credentials'),
        h('p', {}, 'If users or tokens are configured, requests need credentials. They can be sent in any of these ways. The console on this page uses your login.'),
        h('table', {}, Object.entries(components.securitySchemes).map(([name, scheme]) => h('tr', {}, h('th', { scope: 'row' }, name), h('td', {}, ...prose(scheme.description)))))),
      h('section', { id: 'errors' }, h('h2', {}, 'Errors'),
        h('p', {}, 'Errors are ', h('code', {}, 'application/problem+json'), ': ', h('a', { href: '#shape-Problem' }, 'Problem'), '.'),
        h('table', {}, errors(document).map(({ status, description }) => h('tr', { id: `refusal-${status}` }, h('th', { scope: 'row' }, status), h('td', {}, ...prose(description)))))),
      h('section', { id: 'schemas' }, h('h2', {}, 'Schemas'), h('div', { class: 'docs-list sheet' }, Object.entries(components.schemas).map(([name, schema]) => schemaView(name, schema)))));
    this.#reveal();
  }

  #applyFilter() {
    const matches = matcher(this.#filter.value);
    for (const section of this.#contents.children) {
      const entries = [...section.querySelectorAll('li')];
      for (const entry of entries) entry.hidden = matches !== null && !matches(fold(`${entry.textContent} ${entry.querySelector('a')?.title}`));
      /** @type {HTMLElement} */ (section).hidden = entries.every((entry) => entry.hidden);
    }
  }

  /** Expands the part of the address and scrolls to it. */
  #reveal() {
    const id = location.hash.slice(1);
    for (const link of this.#contents.querySelectorAll('a')) set(link, { 'aria-current': link.hash === location.hash && 'true' });
    const part = id === '' ? null : this.querySelector(`#${CSS.escape(id)}`);
    if (part instanceof HTMLDetailsElement) part.open = true;
    // The browser scrolls after the navigation, before the part is expanded.
    if (part) requestAnimationFrame(() => part.scrollIntoView());
  }
}

/** @param {Document} document */
function errors({ components: { responses } }) {
  const all = Object.values(responses).map(({ description, content }) => ({ description, status: content['application/problem+json'].example.status }));
  return all.sort((a, b) => a.status - b.status);
}

customElements.define('docs-page', DocsPage);
