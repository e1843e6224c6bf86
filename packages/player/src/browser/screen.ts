/** What Safari on iPhones has instead of full screen for any element. */
type PhoneVideo = HTMLVideoElement & { webkitEnterFullscreen?: () => void };

/** Full screen and picture in picture, where browser and embedder allow them. */
export interface Screen {
  readonly canFill: boolean;
  readonly canFloat: boolean;
  readonly filled: boolean;
  toggleFill(): void;
  toggleFloat(): void;
}

export function createScreen(player: HTMLElement, video: HTMLVideoElement): Screen {
  const phone: PhoneVideo = video;
  const ignore = (): undefined => undefined;
  return {
    canFill: document.fullscreenEnabled || phone.webkitEnterFullscreen !== undefined,
    canFloat: document.pictureInPictureEnabled,
    get filled() {
      return document.fullscreenElement !== null;
    },
    // Refused without a click of the viewer, or by the embedder: then nothing happens.
    toggleFill() {
      if (document.fullscreenElement !== null) void document.exitFullscreen().catch(ignore);
      else if (document.fullscreenEnabled) void player.requestFullscreen().catch(ignore);
      else phone.webkitEnterFullscreen?.();
    },
    toggleFloat() {
      if (document.pictureInPictureElement !== null) void document.exitPictureInPicture().catch(ignore);
      else if (document.pictureInPictureEnabled) void video.requestPictureInPicture().catch(ignore);
    },
  };
}
