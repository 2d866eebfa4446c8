// <project-switch>: the current project, with a menu of all projects. It is hidden if there are none, and a label if the user may see
// only one.

/** @import { MenuItem } from './menu-button.js' */

import * as paths from '../lib/paths.js';
import { fill, h } from '../lib/dom.js';
import { count, plural } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { projects } from '../lib/projects.js';
import { menuButton } from './menu-button.js';

const ALL_MAIL = 'All mail';

export class ProjectSwitch extends HTMLElement {
  #name = h('span', { class: 'truncate' });
  #menu = menuButton({ class: 'sidebar-link', title: 'Switch to another project', label: 'Projects' }, [h('span', { class: 'hidden' }, 'Project: '), this.#name, icon('down')], items);
  #label = h('p', { class: 'project-label truncate' });
  /** What is shown. */
  #drawn = '';
  #disconnected = new AbortController();

  connectedCallback() {
    const { signal } = this.#disconnected = new AbortController();
    projects.addEventListener('change', () => this.#draw(), { signal });
    // In a project there are no events of the others, so their counts are loaded when the menu opens.
    this.#menu.root.addEventListener('toggle', (event) => /** @type {ToggleEvent} */ (event).newState === 'open' && projects.load(), { capture: true, signal });
    this.#draw();
  }

  disconnectedCallback() {
    this.#disconnected.abort();
  }

  #draw() {
    const { current, canSwitch, all } = projects;
    const state = JSON.stringify([current, canSwitch, all]);
    if (state === this.#drawn) return;
    this.#drawn = state;
    this.hidden = current === null && all.length === 0;
    const part = canSwitch ? this.#menu.root : this.#label;
    if (this.firstChild !== part) fill(this, part);
    this.#name.textContent = current ?? ALL_MAIL;
    this.#label.textContent = current;
    this.#label.title = current ?? '';
    this.#menu.refresh();
  }
}

/** Returns the entries of the menu. @returns {MenuItem[]} */
function items() {
  const { current, all, isComplete } = projects;
  // A project without messages is not in the list.
  const isListed = current === null || all.some(({ name }) => name === current);
  const shown = isListed ? all : [{ name: current, messages: 0, unseen: 0 }, ...all];
  return [
    { label: ALL_MAIL, href: paths.project(null, current), checked: current === null },
    ...shown.map(({ name, messages, unseen }) => ({
      label: name,
      detail: `${plural(messages, 'message')}, ${unseen === 0 ? 'none' : count(unseen)} unread`,
      href: paths.project(name, current),
      checked: name === current,
    })),
    ...(isComplete ? [] : [{ label: `These are the first ${count(all.length)} projects.`, disabled: true }]),
  ];
}

customElements.define('project-switch', ProjectSwitch);
