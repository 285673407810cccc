// A session's scene with all that drawing it takes; fetched once.
import type { GetSceneResponse, SessionInfo } from "../../generated/tribo/v1/simulation_pb";
import { simulation } from "../wire/api";
import { type Assets, fetchAssets } from "./geometry";

export interface SceneData {
  scene: GetSceneResponse;
  assets: Assets;
}

export async function fetchScene(sceneId: string, signal: AbortSignal): Promise<SceneData> {
  const scene = await simulation.getScene({ sceneId }, { signal });
  return { scene, assets: await fetchAssets(sceneId, scene.shapeInfos, signal) };
}

/** The session of an id or of its first digits. */
export async function findSession(id: string, signal: AbortSignal): Promise<SessionInfo> {
  let pageToken = "";
  do {
    const answer = await simulation.listSessions({ pageSize: 1000, pageToken }, { signal });
    const found = answer.sessions.find((session) => session.sessionId.startsWith(id));
    if (found) return found;
    pageToken = answer.nextPageToken;
  } while (pageToken);
  throw new Error(`There is no open session ${id} that this key may see.`);
}
