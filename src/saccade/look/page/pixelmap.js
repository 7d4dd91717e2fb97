// Scores of the fields of a picture, drawn over it: what adds is blue, what takes away is orange.
import { Component } from "./vendor/preact.js";
import { html } from "./view.js";
import { pictureOf } from "./picture.js";

export class PixelMap extends Component {
  componentDidMount() {
    this.draw();
  }

  componentDidUpdate() {
    this.draw();
  }

  draw() {
    const { run, axis, values } = this.props;
    const [rows, columns] = axis.shape ?? [1, values.length];
    const image = pictureOf(run, () => this.draw());
    const width = this.canvas.parentElement.clientWidth || 260;
    this.canvas.width = width;
    this.canvas.height = Math.round((width * rows) / columns);
    const context = this.canvas.getContext("2d");
    if (image?.naturalWidth) context.drawImage(image, 0, 0, this.canvas.width, this.canvas.height);
    const most = Math.max(1e-9, ...values.map(Math.abs));
    const [w, h] = [this.canvas.width / columns, this.canvas.height / rows];
    values.forEach((value, i) => {
      context.fillStyle = value > 0 ? `rgb(30 100 240 / ${0.75 * (value / most)})` : `rgb(230 120 20 / ${0.75 * (-value / most)})`;
      context.fillRect((i % columns) * w, Math.floor(i / columns) * h, w + 0.5, h + 0.5);
    });
  }

  render() {
    return html`<canvas class="pixelmap" role="img" aria-label="Scores of the fields of the picture" ref=${(element) => { this.canvas = element; }}></canvas>`;
  }
}
