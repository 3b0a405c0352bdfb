// Moves and zooms a drawing inside its frame: by mouse, wheel, keys and buttons.

const MIN_ZOOM = 0.02;
const MAX_ZOOM = 6;
const KEY_STEP = 60;
const DRAG_PIXELS = 4;

export class PanZoom {
  x = 0;
  y = 0;
  zoom = 1;

  /** @param {HTMLElement} frame @param {SVGElement} content moves inside the frame
   *  @param {() => {width: number, height: number}} size of the drawing at zoom 1 */
  constructor(frame, content, size) {
    this.frame = frame;
    this.content = content;
    this.size = size;
    frame.addEventListener('wheel', (event) => this.onWheel(event), { passive: false });
    frame.addEventListener('keydown', (event) => this.onKey(event));
    this.listenToDrags();
  }

  show() {
    this.content.setAttribute('transform', `translate(${this.x},${this.y}) scale(${this.zoom})`);
  }

  /** Keeps what is at (x, y) of the frame there. @param {number} factor @param {number} [x] @param {number} [y] */
  zoomBy(factor, x = this.frame.clientWidth / 2, y = this.frame.clientHeight / 2) {
    const zoom = Math.min(MAX_ZOOM, Math.max(MIN_ZOOM, this.zoom * factor));
    this.x = x - (x - this.x) * zoom / this.zoom;
    this.y = y - (y - this.y) * zoom / this.zoom;
    this.zoom = zoom;
    this.show();
  }

  /** @param {number} dx @param {number} dy */
  moveBy(dx, dy) {
    this.x += dx;
    this.y += dy;
    this.show();
  }

  /** The whole drawing; where that would be too small to read, its top. @param {boolean} whole */
  fit(whole = true) {
    const { width, height } = this.size();
    const [w, h] = [this.frame.clientWidth || 800, this.frame.clientHeight || 500];
    const fits = Math.min(w / width, h / height, 1);
    this.zoom = Math.max(MIN_ZOOM, whole ? fits : Math.max(fits, Math.min(1, Math.max(w / width, 0.6))));
    this.x = (w - width * this.zoom) / 2;
    this.y = Math.max(0, (h - height * this.zoom) / 2);
    this.show();
  }

  /** @param {number} x @param {number} y of the drawing, brought to the frame's middle */
  centre(x, y) {
    this.x = this.frame.clientWidth / 2 - x * this.zoom;
    this.y = this.frame.clientHeight / 2 - y * this.zoom;
    this.show();
  }

  /** @param {WheelEvent} event */
  onWheel(event) {
    // A page that scrolls past is not caught: the wheel zooms once the frame has the focus.
    if (!event.ctrlKey && !event.metaKey && !this.frame.contains(document.activeElement)) return;
    event.preventDefault();
    const box = this.frame.getBoundingClientRect();
    this.zoomBy(Math.exp(-event.deltaY / 400), event.clientX - box.left, event.clientY - box.top);
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const zoom = { '+': 1.25, '=': 1.25, '-': 0.8 }[event.key];
    /** @type {Record<string, [number, number]>} */
    const moves = { ArrowLeft: [KEY_STEP, 0], ArrowRight: [-KEY_STEP, 0], ArrowUp: [0, KEY_STEP], ArrowDown: [0, -KEY_STEP] };
    const move = event.target === this.frame ? moves[event.key] : undefined;
    if (zoom) this.zoomBy(zoom);
    else if (move) this.moveBy(...move);
    else if (event.key === '0') this.fit();
    else return;
    event.preventDefault();
  }

  listenToDrags() {
    /** @type {{x: number, y: number, moved: boolean} | undefined} */
    let from;
    this.frame.addEventListener('pointerdown', (event) => { if (event.button === 0) from = { x: event.clientX, y: event.clientY, moved: false }; });
    this.frame.addEventListener('pointermove', (event) => {
      if (!from) return;
      const [dx, dy] = [event.clientX - from.x, event.clientY - from.y];
      if (!from.moved && Math.hypot(dx, dy) < DRAG_PIXELS) return;
      if (!from.moved) this.frame.setPointerCapture(event.pointerId);
      from = { x: event.clientX, y: event.clientY, moved: true };
      this.moveBy(dx, dy);
    });
    for (const end of ['pointerup', 'pointercancel']) this.frame.addEventListener(end, () => { from = undefined; });
  }
}
