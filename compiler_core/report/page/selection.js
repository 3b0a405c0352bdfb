// The layer that is chosen, which every view of a report shows: its row, its node, its point.

export class Selection {
  name = '';
  /** @type {Set<(name: string) => void>} */
  #listeners = new Set();
  /** Shows a view of the report; set by the page around the views.
   *  @type {(view: string) => void} */
  show = () => {};

  /** @param {string} name */
  choose(name) {
    this.name = name;
    for (const listener of this.#listeners) listener(name);
  }
  /** Chooses a layer and shows it in another view. @param {string} view @param {string} name */
  chooseIn(view, name) {
    this.show(view);
    this.choose(name);
  }
  /** @param {(name: string) => void} listener */
  listen(listener) {
    this.#listeners.add(listener);
    if (this.name) listener(this.name);
  }
}
