// The view: camera, lights, the scene of three.js, drawn when something has changed. It knows
// frames; where they come from (a session, a recording) is none of its business.
import {
  Box3,
  Color,
  DirectionalLight,
  GridHelper,
  HemisphereLight,
  type InstancedMesh,
  Matrix4,
  Object3D,
  PCFShadowMap,
  PerspectiveCamera,
  Raycaster,
  Scene,
  Vector2,
  Vector3,
  WebGLRenderer,
} from "three";
import { OrbitControls } from "three/examples/jsm/controls/OrbitControls.js";

import { type GetSceneResponse, ShapeType } from "../../generated/tribo/v1/simulation_pb";
import { Bodies, localMatrix, type Offsets, type Picked, poseMatrix } from "./bodies";
import { ContactView } from "./contacts";
import { type Light, UNDRAWN } from "./flat";
import { type Frame, POSE } from "./frame";
import type { Assets } from "./geometry";
import { type Options } from "./options";
import { Overlays } from "./overlays";
import { Pace } from "./pace";
import { forcesOf } from "./picked";

Object3D.DEFAULT_UP.set(0, 0, 1);

const UNSCALED = [1, 1, 1] as const;
/** Pixels along a CSS pixel in a slow view whose picture moves: half of all pixels. */
const MOVING_RATIO = 0.7;
/** ms without a change after which a picture is at rest, and is drawn with all its pixels. */
const REST_MS = 300;
const TOWARDS_SUN = new Vector3(-1.2, -1, 2.6).normalize();

export interface Hit {
  body?: Picked;
  contact?: { world: number; index: number };
}

function themeColour(name: string): Color {
  return new Color(getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
}

/** Whether the machine draws by software: edges are then left rough and shadows out. */
function isSoftware(): boolean {
  const gl = document.createElement("canvas").getContext("webgl2");
  const about = gl?.getExtension("WEBGL_debug_renderer_info");
  const name: unknown = about ? gl?.getParameter(about.UNMASKED_RENDERER_WEBGL) : "";
  gl?.getExtension("WEBGL_lose_context")?.loseContext();
  return /swiftshader|llvmpipe|software/i.test(String(name));
}

/** A context without transparency: a browser that draws by software need not blend the canvas with
 * the page. undefined: WebGL 2 is missing, which the renderer then reports. */
function opaqueContext(canvas: HTMLCanvasElement, antialias: boolean): WebGL2RenderingContext | undefined {
  return canvas.getContext("webgl2", { alpha: false, antialias }) ?? undefined;
}

/** Places of worlds in a square grid, `distance` m apart. */
function gridOf(worlds: number, distance: number): [number, number][] {
  const side = Math.ceil(Math.sqrt(worlds));
  const middle = (side - 1) / 2;
  return Array.from({ length: worlds }, (_, i) => [
    distance * ((i % side) - middle),
    distance * (middle - Math.floor(i / side)),
  ]);
}

export class View {
  readonly scene = new Scene();
  readonly camera = new PerspectiveCamera(40, 1, 0.001, 500);
  readonly pace = new Pace(isSoftware());
  readonly contacts: ContactView;
  readonly bodies: Bodies;
  private readonly renderer: WebGLRenderer;
  private readonly orbit: OrbitControls;
  private readonly sun = new DirectionalLight("#ffffff", 2.2);
  private readonly sky = new HemisphereLight("#ffffff", "#8d8a80", 1.6);
  private readonly overlays: Overlays;
  private readonly resize: ResizeObserver;
  private readonly theme = matchMedia("(prefers-color-scheme: dark)");
  private grid: GridHelper | undefined;
  private offsets: Offsets = [[0, 0]];
  private frame: Frame | undefined;
  private chosen: Picked | undefined;
  private followed: Vector3 | undefined;
  private radius = 1;
  private dirty = true;
  private stale = false;
  private moving = false;
  /** ms, by the page's clock, of the last change of the picture. */
  private changed = 0;
  /** m/N, of the arrows as they are placed. */
  arrowScale = 0;
  private animation = 0;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly model: GetSceneResponse,
    assets: Assets,
    private readonly worlds: number,
    private options: Options,
  ) {
    this.renderer = new WebGLRenderer({ canvas, context: opaqueContext(canvas, !this.pace.slow) });
    this.renderer.shadowMap.type = PCFShadowMap;
    this.bodies = new Bodies(model, assets, worlds, this.pace.slow, this.lightOfBodies());
    this.contacts = new ContactView(model, this.pace.slow);
    this.overlays = new Overlays(model, assets, (shape) => localMatrix(shape, UNSCALED));
    this.orbit = new OrbitControls(this.camera, canvas);
    this.orbit.enableDamping = false;
    this.orbit.addEventListener("change", this.touch);
    this.orbit.listenToKeyEvents(canvas);
    this.sun.shadow.mapSize.set(1024, 1024);
    this.scene.add(this.sky, this.sun, this.sun.target, this.bodies, this.contacts, this.overlays);
    this.theme.addEventListener("change", this.paint);
    this.resize = new ResizeObserver(() => {
      this.fit();
    });
    this.resize.observe(canvas);
    this.paint();
    this.fit();
    this.setOptions(options);
    this.loop();
  }

  private readonly touch = (): void => {
    this.dirty = true;
  };

  private readonly paint = (): void => {
    this.scene.background = themeColour("view");
    this.bodies.paintGround(themeColour("ground"));
    this.dirty = true;
  };

  private fit(): void {
    const width = Math.max(1, this.canvas.clientWidth);
    const height = Math.max(1, this.canvas.clientHeight);
    this.renderer.setPixelRatio(this.ratio());
    this.renderer.setSize(width, height, false);
    this.camera.aspect = width / height;
    this.camera.updateProjectionMatrix();
    this.dirty = true;
  }

  /** Pixels along a CSS pixel. */
  private ratio(): number {
    if (!this.pace.slow) return Math.min(2, window.devicePixelRatio);
    return this.moving ? MOVING_RATIO : 1;
  }

  /** Tells a picture that moves from one at rest: two changes in quick succession are a motion. */
  private settle(now: number): void {
    const moving = now - this.changed < REST_MS;
    if (this.dirty) this.changed = now;
    if (moving === this.moving || (moving && !this.dirty)) return;
    this.moving = moving;
    if (this.renderer.getPixelRatio() !== this.ratio()) this.fit();
  }

  setOptions(options: Options): void {
    this.options = options;
    const shadows = options.shadows && !this.pace.slow;
    this.renderer.shadowMap.enabled = shadows;
    this.sun.castShadow = shadows;
    this.bodies.style(options.wireframe, options.transparent);
    this.stale = true;
  }

  /** Shows a frame at the next drawing; a frame that comes before that takes its place. */
  show(frame: Frame): void {
    const first = this.frame === undefined || this.frame.worlds.length !== frame.worlds.length;
    this.frame = frame;
    if (first) this.frameAll();
    this.stale = true;
  }

  /** Places everything as the frame says. */
  private place(): void {
    const { frame, options } = this;
    this.stale = false;
    if (!frame) return;
    const sized = { ...options, size: 0.012 * this.radius * options.pointSize };
    this.bodies.show(frame, this.offsets);
    this.contacts.show(frame, this.offsets, sized, this.chosen);
    this.arrowScale = sized.scale;
    this.overlays.show(frame, this.offsets, sized);
    this.followBody();
    this.dirty = true;
  }

  // ---- the camera ------------------------------------------------------------------------------

  /** The box of the bodies that move, or of all where none does. */
  private extent(frame: Frame): Box3 {
    const box = new Box3();
    const place = new Matrix4();
    const bodies = this.model.bodies.length;
    for (const shape of this.model.shapeInfos) {
      if (shape.type === ShapeType.PLANE || (shape.body === 0 && bodies > 1)) continue;
      poseMatrix(frame, 0, shape.body, bodies, [0, 0], place).multiply(localMatrix(shape, UNSCALED));
      const centre = new Vector3().setFromMatrixPosition(place);
      const reach = shape.size.length > 0 ? Math.max(...shape.size) * 1.4 : 0.05;
      box.expandByPoint(centre.clone().addScalar(reach));
      box.expandByPoint(centre.clone().addScalar(-reach));
    }
    if (box.isEmpty()) box.set(new Vector3(-1, -1, 0), new Vector3(1, 1, 1));
    return box;
  }

  /** m/N; with it the largest normal force is an arrow of a fitting length. 0: no force is known. */
  fittingScale(frame: Frame): number {
    let largest = 0;
    for (const set of frame.contacts)
      for (let i = 0; i < set.count; i++)
        largest = Math.max(largest, forcesOf(set, i).normal);
    return largest > 0 ? (0.35 * this.radius) / largest : 0;
  }

  /** Places worlds, camera, light and grid so that all is seen. */
  frameAll(): void {
    const frame = this.frame;
    if (!frame) return;
    const box = this.extent(frame);
    const middle = box.getCenter(new Vector3());
    const single = Math.max(0.02, box.getSize(new Vector3()).length() / 2);
    this.offsets = gridOf(Math.min(this.worlds, Math.max(1, frame.worlds.length)), 2.6 * single);
    // the narrower side of the window has to hold all
    const narrow = Math.max(1, 1.1 / this.camera.aspect);
    const reach = single + 2.6 * single * ((Math.ceil(Math.sqrt(this.offsets.length)) - 1) * 0.55);
    this.radius = single;
    this.camera.near = reach / 200;
    this.camera.far = reach * 200;
    this.orbit.target.copy(middle);
    this.camera.position.copy(middle).add(new Vector3(1.35, -2.1, 1.15).normalize().multiplyScalar(2.4 * narrow * reach));
    this.camera.updateProjectionMatrix();
    this.orbit.update();
    this.light(middle, reach);
    this.followed = undefined;
  }

  private lightOfBodies(): Light {
    const { sky, sun } = this;
    return {
      sky: sky.color.clone().multiplyScalar(sky.intensity),
      ground: sky.groundColor.clone().multiplyScalar(sky.intensity),
      sun: sun.color.clone().multiplyScalar(sun.intensity),
      towardsSun: TOWARDS_SUN,
    };
  }

  private light(middle: Vector3, reach: number): void {
    this.sun.position.copy(middle).addScaledVector(TOWARDS_SUN, 3 * reach);
    this.sun.target.position.copy(middle);
    const camera = this.sun.shadow.camera;
    camera.left = camera.bottom = -1.8 * reach;
    camera.right = camera.top = 1.8 * reach;
    camera.near = reach / 10;
    camera.far = 8 * reach;
    this.sun.shadow.normalBias = reach / 200;
    camera.updateProjectionMatrix();
    this.grid?.removeFromParent();
    const cell = 10 ** Math.round(Math.log10(reach / 2));
    this.grid = new GridHelper(40 * cell, 40, "#888888", "#888888");
    this.grid.rotateX(Math.PI / 2);
    this.grid.position.z = cell / 2000;
    const material = this.grid.material;
    material.transparent = true;
    material.opacity = 0.22;
    material.depthWrite = false;
    this.scene.add(this.grid);
  }

  private followBody(): void {
    const { frame, chosen } = this;
    if (!frame || !chosen || !this.options.follow) {
      this.followed = undefined;
      return;
    }
    const at = POSE * (chosen.world * this.model.bodies.length + chosen.body);
    const offset = this.offsets[chosen.world] ?? [0, 0];
    const now = new Vector3(
      (frame.poses[at] ?? 0) + offset[0],
      (frame.poses[at + 1] ?? 0) + offset[1],
      frame.poses[at + 2] ?? 0,
    );
    const way = now.clone().sub(this.followed ?? this.orbit.target);
    this.orbit.target.add(way);
    this.camera.position.add(way);
    this.followed = now;
    this.orbit.update();
  }

  // ---- choosing --------------------------------------------------------------------------------

  choose(picked: Picked | undefined): void {
    this.chosen = picked;
    this.followed = undefined;
    this.bodies.choose(picked);
    this.stale = true;
  }

  /** The item under a point of the canvas, in CSS pixels. */
  pick(x: number, y: number): Hit {
    const place = new Vector2(
      (2 * x) / this.canvas.clientWidth - 1,
      1 - (2 * y) / this.canvas.clientHeight,
    );
    const ray = new Raycaster();
    ray.setFromCamera(place, this.camera);
    ray.layers.enable(UNDRAWN);
    const points = this.contacts.pointMesh;
    const [point] = points.visible ? ray.intersectObject(points, false) : [];
    if (point?.instanceId !== undefined) return { contact: this.contactAt(point.instanceId) };
    for (const hit of ray.intersectObjects(this.bodies.instances, false)) {
      const picked = this.bodies.pickedAt(hit.object as InstancedMesh, hit.instanceId ?? 0);
      if (picked && picked.body > 0) return { body: picked };
    }
    return {};
  }

  private contactAt(instance: number): { world: number; index: number } {
    let left = instance;
    let world = 0;
    for (const set of this.frame?.contacts ?? []) {
      if (left < set.count) break;
      left -= set.count;
      world++;
    }
    return { world, index: left };
  }

  // ---- drawing ---------------------------------------------------------------------------------

  private loop = (): void => {
    this.animation = requestAnimationFrame(this.loop);
    const sent = this.frame?.sent ?? 0;
    const wasSlow = this.pace.slow;
    this.pace.begin();
    if (this.stale) this.place();
    this.settle(performance.now());
    if (this.dirty) {
      this.dirty = false;
      this.render();
      this.pace.drawn(sent);
      if (this.pace.slow !== wasSlow) {
        this.fit();
        this.setOptions(this.options);
      }
    }
  };

  private render(): void {
    this.bodies.face(this.camera.position);
    this.contacts.face(this.camera.position);
    this.renderer.render(this.scene, this.camera);
  }

  picture(): Promise<Blob | null> {
    this.moving = false;
    this.fit();
    this.render();
    return new Promise((done) => {
      this.canvas.toBlob(done, "image/png");
    });
  }

  dispose(): void {
    cancelAnimationFrame(this.animation);
    this.resize.disconnect();
    this.theme.removeEventListener("change", this.paint);
    this.orbit.dispose();
    this.bodies.release();
    this.renderer.dispose();
  }
}
