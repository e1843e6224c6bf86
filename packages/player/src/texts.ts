/** Every sentence and label that a viewer sees, in each language. Shared by the page and its script. */

export const languages = ['en', 'ar'] as const;
export type Language = (typeof languages)[number];

export const directions = { en: 'ltr', ar: 'rtl' } as const satisfies Record<Language, string>;

/** A heading and what to do about it. */
interface Message {
  title: string;
  text: string;
}

const english = {
  messages: {
    token_missing: {
      title: 'This video cannot be opened',
      text: 'The address has no playback token. Open the video from the page that shows it.',
    },
    token_invalid: {
      title: 'This video cannot be opened',
      text: 'The playback token does not fit this video. Reload the page that shows it.',
    },
    token_expired: {
      title: 'Your viewing session has expired',
      text: 'Try again, or reload the page to go on watching.',
    },
    origin_missing: {
      title: 'This video cannot play here',
      text: 'Your browser does not say which page shows the video. Check its privacy settings, then try again.',
    },
    domain_mismatch: {
      title: 'This video cannot play here',
      text: 'It may only be shown on another website.',
    },
    video_unavailable: {
      title: 'This video is not available',
      text: 'It is on hold or has been deleted. Try again later.',
    },
    video_held: {
      title: 'This video is on hold',
      text: 'It cannot be played for now. Try again later.',
    },
    video_deleted: {
      title: 'This video has been deleted',
      text: 'It can no longer be played.',
    },
    plan_limit_reached: {
      title: 'This video cannot play at the moment',
      text: 'The viewing limit of its owner has been reached. Try again later.',
    },
    not_found: {
      title: 'There is no video here',
      text: 'The address is wrong, or the video is not there any more.',
    },
    state_unavailable: {
      title: 'This video cannot be checked right now',
      text: 'The problem is ours and usually passes quickly. Try again in a moment.',
    },
    service_unavailable: {
      title: 'The service cannot answer right now',
      text: 'The problem is ours and usually passes quickly. Try again in a moment.',
    },
    network_lost: {
      title: 'The connection was lost',
      text: 'Check your internet connection, then try again.',
    },
    segment_missing: {
      title: 'A part of this video is missing',
      text: 'Try again, or move to another place in the video.',
    },
    playback_failed: {
      title: 'Playback failed',
      text: 'Your browser could not play this part of the video. Try again.',
    },
    unsupported: {
      title: 'Your browser cannot play this video',
      text: 'Update your browser or use another one.',
    },
  } satisfies Record<string, Message>,
  labels: {
    player: 'Video player',
    untitled: 'Video',
    retry: 'Try again',
    play: 'Play',
    pause: 'Pause',
    mute: 'Mute',
    unmute: 'Unmute',
    volume: 'Volume',
    seek: 'Position',
    position: '{now} of {all}',
    captions: 'Captions',
    captionsOff: 'Off',
    settings: 'Settings',
    quality: 'Quality',
    automatic: 'Automatic',
    speed: 'Speed',
    normal: 'Normal',
    audio: 'Sound',
    track: 'Track {n}',
    fullscreen: 'Full screen',
    exitFullscreen: 'Leave full screen',
    pictureInPicture: 'Picture in picture',
    loading: 'Loading',
    customerLogo: 'Logo',
    slow: 'The player could not be loaded. Reload the page, or check that your browser allows scripts.',
  },
};

export type Texts = typeof english;
export type MessageKey = keyof Texts['messages'];

const arabic: Texts = {
  messages: {
    token_missing: {
      title: 'لا يمكن فتح هذا الفيديو',
      text: 'لا يحتوي العنوان على رمز تشغيل. افتح الفيديو من الصفحة التي تعرضه.',
    },
    token_invalid: {
      title: 'لا يمكن فتح هذا الفيديو',
      text: 'رمز التشغيل لا يخص هذا الفيديو. أعد تحميل الصفحة التي تعرضه.',
    },
    token_expired: {
      title: 'انتهت صلاحية جلسة المشاهدة',
      text: 'حاول مرة أخرى أو أعد تحميل الصفحة لمتابعة المشاهدة.',
    },
    origin_missing: {
      title: 'لا يمكن تشغيل هذا الفيديو هنا',
      text: 'لا يذكر متصفحك الصفحة التي تعرض الفيديو. راجع إعدادات الخصوصية ثم حاول مرة أخرى.',
    },
    domain_mismatch: {
      title: 'لا يمكن تشغيل هذا الفيديو هنا',
      text: 'لا يُسمح بعرضه إلا في موقع آخر.',
    },
    video_unavailable: {
      title: 'هذا الفيديو غير متاح',
      text: 'تم إيقافه مؤقتًا أو حذفه. حاول مرة أخرى لاحقًا.',
    },
    video_held: {
      title: 'هذا الفيديو موقوف مؤقتًا',
      text: 'لا يمكن تشغيله في الوقت الحالي. حاول مرة أخرى لاحقًا.',
    },
    video_deleted: {
      title: 'تم حذف هذا الفيديو',
      text: 'لم يعد تشغيله ممكنًا.',
    },
    plan_limit_reached: {
      title: 'لا يمكن تشغيل هذا الفيديو حاليًا',
      text: 'بلغ مالك الفيديو حد المشاهدة. حاول مرة أخرى لاحقًا.',
    },
    not_found: {
      title: 'لا يوجد فيديو هنا',
      text: 'العنوان غير صحيح أو لم يعد الفيديو موجودًا.',
    },
    state_unavailable: {
      title: 'يتعذر التحقق من هذا الفيديو الآن',
      text: 'المشكلة من جهتنا وتزول سريعًا في العادة. حاول مرة أخرى بعد قليل.',
    },
    service_unavailable: {
      title: 'الخدمة لا تستجيب الآن',
      text: 'المشكلة من جهتنا وتزول سريعًا في العادة. حاول مرة أخرى بعد قليل.',
    },
    network_lost: {
      title: 'انقطع الاتصال',
      text: 'تحقق من اتصالك بالإنترنت ثم حاول مرة أخرى.',
    },
    segment_missing: {
      title: 'جزء من هذا الفيديو مفقود',
      text: 'حاول مرة أخرى أو انتقل إلى موضع آخر في الفيديو.',
    },
    playback_failed: {
      title: 'فشل التشغيل',
      text: 'لم يتمكن متصفحك من تشغيل هذا الجزء من الفيديو. حاول مرة أخرى.',
    },
    unsupported: {
      title: 'لا يستطيع متصفحك تشغيل هذا الفيديو',
      text: 'حدّث متصفحك أو استخدم متصفحًا آخر.',
    },
  },
  labels: {
    player: 'مشغل الفيديو',
    untitled: 'فيديو',
    retry: 'حاول مرة أخرى',
    play: 'تشغيل',
    pause: 'إيقاف مؤقت',
    mute: 'كتم الصوت',
    unmute: 'إلغاء كتم الصوت',
    volume: 'مستوى الصوت',
    seek: 'الموضع',
    position: '{now} من {all}',
    captions: 'الترجمة',
    captionsOff: 'بدون',
    settings: 'الإعدادات',
    quality: 'الجودة',
    automatic: 'تلقائي',
    speed: 'السرعة',
    normal: 'عادية',
    audio: 'الصوت',
    track: 'المسار {n}',
    fullscreen: 'ملء الشاشة',
    exitFullscreen: 'الخروج من ملء الشاشة',
    pictureInPicture: 'صورة داخل صورة',
    loading: 'جارٍ التحميل',
    customerLogo: 'الشعار',
    slow: 'تعذر تحميل المشغل. أعد تحميل الصفحة أو تأكد من أن متصفحك يسمح بالبرامج النصية.',
  },
};

export const texts: Record<Language, Texts> = { en: english, ar: arabic };

/** The message for an error code of the CDN; a code without words of its own is our fault. */
export const messageKeyOf = (code: string): MessageKey =>
  Object.hasOwn(english.messages, code) ? (code as MessageKey) : 'service_unavailable';

/** Puts values into the places of a label: `{now} of {all}`. */
export const fill = (label: string, values: Record<string, string | number>): string =>
  label.replaceAll(/\{(\w+)\}/g, (place, name: string) => String(values[name] ?? place));
