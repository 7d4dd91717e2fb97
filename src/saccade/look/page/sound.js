// Looks at a sound: its spectrogram, bright where the focused word listened, playing with a cursor.
import { Component } from "./vendor/preact.js";
import { html } from "./view.js";
import { cividis } from "./colour.js";
import { pinAt } from "./doing.js";
import { HALF } from "./numbers.js";
import { focus } from "./linked.js";
import { onHover, setHover, state } from "./state.js";

const HEIGHT = 180;
const LANE = 34;
const WINDOW = 512;

export class Sound extends Component {
  componentDidMount() {
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.box);
    this.off = onHover(() => this.draw());
    this.load();
  }

  componentDidUpdate(before) {
    if (before.run !== this.props.run || before.axis !== this.props.axis) this.load();
    else this.draw();
  }

  componentWillUnmount() {
    this.observer.disconnect();
    this.off();
    if (this.url) URL.revokeObjectURL(this.url);
  }

  // The sound that came with the run, and its spectrogram as the model heard it, or else as it is.
  async load() {
    const { run, axis } = this.props;
    const bytes = run.array("sound")?.data ?? state.file?.bytes;
    const mel = run.array(`mel${state.part}`);
    const heard = run.record.sounds?.[state.part];
    this.start = heard?.start ?? 0;
    this.seconds = heard?.seconds ?? axis.count * axis.seconds;
    this.picture = mel ? melPicture(mel) : null;
    if (bytes && this.of !== bytes) {
      if (this.url) URL.revokeObjectURL(this.url);
      this.of = bytes;
      this.url = URL.createObjectURL(new Blob([bytes]));
      this.audio.src = this.url;
    }
    if (bytes && !mel) {
      try {
        const context = new OfflineAudioContext(1, 1, 16000);
        const sound = await context.decodeAudioData(bytes.slice().buffer);
        this.picture = spectrogram(sound.getChannelData(0));
        this.seconds = sound.duration;
      } catch {
        this.picture = null; // the lane below still shows where it listened
      }
    }
    this.draw();
  }

  get length() {
    return this.seconds;
  }

  draw() {
    const { weights, axis, letter } = this.props;
    if (!this.canvas || !this.box.clientWidth || !this.seconds) return;
    const width = this.box.clientWidth;
    const scale = Math.min(2, devicePixelRatio || 1);
    this.canvas.width = width * scale;
    this.canvas.height = (HEIGHT + LANE) * scale;
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${HEIGHT + LANE}px`;
    const context = this.canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.fillStyle = "#00224e";
    context.fillRect(0, 0, width, HEIGHT);
    if (this.picture) context.drawImage(this.picture, 0, 0, width, HEIGHT);
    const row = focus(letter).row ?? state.pin?.row ?? null;
    const step = (axis.seconds / this.length) * width;
    const style = getComputedStyle(document.documentElement);
    if (weights && row !== null && row < weights.rows) {
      let most = 1e-6;
      for (let c = 0; c < weights.columns; c++) most = Math.max(most, HALF[weights.bits[row * weights.columns + c]]);
      for (let c = 0; c < weights.columns; c++) {
        const share = Math.sqrt(HALF[weights.bits[row * weights.columns + c]] / most);
        context.fillStyle = `rgb(5 10 25 / ${(0.78 * (1 - share)).toFixed(3)})`;
        const left = Math.round(c * step); // whole pixels, or veils would overlap
        const wide = Math.round((c + 1) * step) - left;
        context.fillRect(left, 0, wide, HEIGHT);
        context.fillStyle = style.getPropertyValue("--accent");
        context.fillRect(left, HEIGHT + LANE - share * (LANE - 4), wide, share * (LANE - 4));
      }
    }
    const now = (this.audio?.currentTime ?? 0) - this.start;
    if (now > 0) {
      context.fillStyle = "#fff";
      context.fillRect((now / this.length) * width - 1, 0, 2, HEIGHT);
    }
  }

  follow() {
    this.draw();
    if (this.audio && !this.audio.paused && !this.audio.ended) requestAnimationFrame(() => this.follow());
  }

  momentAt(event) {
    const bounds = this.canvas.getBoundingClientRect();
    const moment = Math.floor((((event.clientX - bounds.left) / bounds.width) * this.length) / this.props.axis.seconds);
    return moment >= 0 && moment < this.props.axis.count ? moment : null;
  }

  render({ axis, letter }) {
    return html`<div class="sound" ref=${(element) => { this.box = element; }}>
      <canvas role="img" aria-label=${`The sound, ${(axis.count * axis.seconds).toFixed(1)} seconds`} ref=${(element) => { this.canvas = element; }}
        onPointerMove=${(event) => setHover(null, this.momentAt(event), letter)} onPointerLeave=${() => setHover(null, null, letter)}
        onClick=${(event) => { const at = this.momentAt(event); if (at !== null) { pinAt(null, at, "column", letter); this.audio.currentTime = this.start + at * axis.seconds; } }}></canvas>
      <audio controls ref=${(element) => { this.audio = element; }} onPlay=${() => this.follow()} onTimeUpdate=${() => this.draw()}></audio>
    </div>`;
  }
}

// Log-mel energies as they came, low tones below.
function melPicture(mel) {
  const [frames, bands] = mel.shape;
  const canvas = new OffscreenCanvas(Math.max(1, frames), Math.max(1, bands));
  const image = new ImageData(Math.max(1, frames), Math.max(1, bands));
  for (let t = 0; t < frames; t++) {
    for (let band = 0; band < bands; band++) {
      const [r, g, b] = cividis(mel.data[t * bands + band] / 255);
      image.data.set([r, g, b, 255], 4 * ((bands - 1 - band) * frames + t));
    }
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

// Magnitudes of short windows on a canvas, low tones below; in decibels, 70 of them.
function spectrogram(samples) {
  const hop = Math.max(160, Math.ceil(samples.length / 1200));
  const frames = Math.max(1, Math.floor((samples.length - WINDOW) / hop));
  const bands = WINDOW / 4;
  const canvas = new OffscreenCanvas(frames, bands);
  const image = new ImageData(frames, bands);
  const real = new Float32Array(WINDOW);
  const imaginary = new Float32Array(WINDOW);
  for (let t = 0; t < frames; t++) {
    for (let i = 0; i < WINDOW; i++) {
      real[i] = (samples[t * hop + i] ?? 0) * (0.5 - 0.5 * Math.cos((2 * Math.PI * i) / WINDOW));
      imaginary[i] = 0;
    }
    transform(real, imaginary);
    for (let band = 0; band < bands; band++) {
      const power = real[band] ** 2 + imaginary[band] ** 2;
      const [r, g, b] = cividis((10 * Math.log10(power + 1e-7) + 50) / 70);
      image.data.set([r, g, b, 255], 4 * ((bands - 1 - band) * frames + t));
    }
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

// The fast Fourier transform of Cooley and Tukey (1965), in place.
function transform(real, imaginary) {
  const count = real.length;
  for (let i = 1, j = 0; i < count; i++) {
    let bit = count >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) {
      [real[i], real[j]] = [real[j], real[i]];
      [imaginary[i], imaginary[j]] = [imaginary[j], imaginary[i]];
    }
  }
  for (let length = 2; length <= count; length *= 2) {
    for (let first = 0; first < count; first += length) {
      for (let k = 0; k < length / 2; k++) {
        const angle = (-2 * Math.PI * k) / length;
        const a = first + k;
        const b = a + length / 2;
        const re = real[b] * Math.cos(angle) - imaginary[b] * Math.sin(angle);
        const im = real[b] * Math.sin(angle) + imaginary[b] * Math.cos(angle);
        real[b] = real[a] - re;
        imaginary[b] = imaginary[a] - im;
        real[a] += re;
        imaginary[a] += im;
      }
    }
  }
}
