// <tab-bar>: the tabs of a message, and the controls of the selected one. Tabs that do not fit are in a menu. The selected tab is
// always visible.

import { fill, h, set } from '../../lib/dom.js';
import { icon } from '../../lib/icons.js';
import { menuButton } from '../menu-button.js';

export class TabBar extends HTMLElement {
  #kinds;
  #choose;
  #tabs;
  #list = h('div', { class: 'tabs', role: 'tablist', 'aria-label': 'Views of the message', onkeydown: (event) => event instanceof KeyboardEvent && this.#move(event) });
  #more = menuButton({ class: 'tab more-tabs', title: 'More views of the message' }, ['More', icon('down')], () => this.#overflow());
  #controls = h('div', { class: 'panel-bar' });
  #selected = 0;
  /** @type {boolean[]} */
  #enabled = [];
  /** The room for the tabs at the last layout. */
  #room = 0;
  #observer = new ResizeObserver(() => this.clientWidth - this.#controls.offsetWidth !== this.#room && this.#fit());

  /**
   * @param {{ name: string, label: string, hasBadge?: boolean }[]} kinds
   * @param {(at: number) => void} choose Called with the index of a tab.
   */
  constructor(kinds, choose) {
    super();
    this.#kinds = kinds;
    this.#choose = choose;
    this.#tabs = kinds.map(({ name, label, hasBadge }, at) => h('button', { class: 'tab', type: 'button', role: 'tab', id: `tab-${name}`, 'aria-controls': `panel-${name}`, title: `${label} (${at + 1})`, onclick: () => this.#choose(at) },
      h('span', { class: 'tab-label', 'data-label': label }, label), hasBadge && h('span', { class: 'badge' })));
    fill(this.#list, this.#tabs);
  }

  connectedCallback() {
    if (!this.firstChild) fill(this, this.#list, this.#more.root, this.#controls);
    this.#observer.observe(this);
    this.#observer.observe(this.#controls);
  }

  disconnectedCallback() {
    this.#observer.disconnect();
  }

  /**
   * Selects a tab.
   * @param {number} selected
   * @param {boolean[]} enabled Tabs that do not apply are disabled, not hidden, so that the others do not move.
   * @param {HTMLElement[]} controls The controls of the selected tab.
   */
  show(selected, enabled, controls) {
    this.#selected = selected;
    this.#enabled = enabled;
    this.#tabs.forEach((tab, at) => {
      set(tab, { 'aria-selected': String(at === selected), 'aria-disabled': !enabled[at] && 'true' });
      tab.tabIndex = at === selected ? 0 : -1;
    });
    fill(this.#controls, controls);
    this.#fit();
  }

  /**
   * Shows a short result on a tab, which has room for it.
   * @param {string} name
   * @param {{ text: string, kind: string, title: string } | null} badge Null for none.
   */
  setBadge(name, badge) {
    const at = this.#kinds.findIndex((kind) => kind.name === name);
    const element = /** @type {HTMLElement} */ (this.#tabs[at].lastElementChild);
    element.textContent = badge?.text ?? '';
    element.className = `badge ${badge?.kind ?? ''}`;
    set(element, { title: badge?.title });
  }

  focusSelected() {
    this.#tabs[this.#selected].focus({ preventScroll: true });
  }

  /** Hides the tabs that do not fit: first those that do not apply, then the last ones, but never the selected one. */
  #fit() {
    this.#room = this.clientWidth - this.#controls.offsetWidth;
    if (this.clientWidth === 0) return;
    for (const tab of this.#tabs) tab.hidden = false;
    this.#more.root.hidden = true;
    if (this.#list.scrollWidth <= this.#list.clientWidth) return;
    this.#more.root.hidden = false;
    const others = [...this.#tabs.keys()].filter((at) => at !== this.#selected);
    const order = [this.#selected, ...others.filter((at) => this.#enabled[at]), ...others.filter((at) => !this.#enabled[at])];
    const widths = this.#tabs.map((tab) => tab.getBoundingClientRect().width);
    const { columnGap, paddingLeft, paddingRight } = getComputedStyle(this.#list);
    let room = this.#list.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
    let isFull = false;
    for (const at of order) {
      room -= widths[at] + (parseFloat(columnGap) || 0);
      isFull ||= room < 0;
      if (isFull && at !== this.#selected) this.#tabs[at].hidden = true;
    }
  }

  /** Returns the menu of the hidden tabs. */
  #overflow() {
    return this.#kinds.flatMap(({ label }, at) => (this.#tabs[at].hidden ? [{ label, detail: this.#tabs[at].querySelector('.badge')?.textContent || String(at + 1), disabled: !this.#enabled[at], run: () => {
      this.#choose(at);
      this.focusSelected();
    } }] : []));
  }

  /** @param {KeyboardEvent} event */
  #move(event) {
    const enabled = this.#tabs.flatMap((_, at) => (this.#enabled[at] ? [at] : []));
    const current = enabled.findIndex((at) => this.#tabs[at] === document.activeElement);
    /** @type {Record<string, number>} */
    const steps = { ArrowRight: current + 1, ArrowLeft: current - 1, Home: 0, End: enabled.length - 1 };
    if (!(event.key in steps) || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    this.#choose(enabled[(steps[event.key] + enabled.length) % enabled.length]);
  }
}

customElements.define('tab-bar', TabBar);
