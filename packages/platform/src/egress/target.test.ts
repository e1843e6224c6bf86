import { describe, expect, it } from '@jest/globals';
import { readTarget } from './target.ts';

const read = (url: string, plainHttp = false) => readTarget(url, { plainHttp });

function refusalOf(url: string): unknown {
  try {
    return read(url);
  } catch (error) {
    return error;
  }
}

describe('readTarget', () => {
  it('takes a URL apart', () => {
    expect(read('https://Hook.Example:8443/a/../b%20c?x=1#part')).toEqual({
      origin: 'https://hook.example:8443',
      secure: true,
      host: 'hook.example',
      family: 0,
      port: '8443',
      path: '/b%20c?x=1',
    });
  });

  it.each([
    ['https://hook.example/', 'hook.example', 0],
    ['https://hook.example./', 'hook.example', 0],
    [' https://hook.example/ ', 'hook.example', 0],
    ['https://ho\tok.exa\nmple/', 'hook.example', 0],
    ['https:\\\\hook.example\\', 'hook.example', 0],
    ['https://bücher.example/', 'xn--bcher-kva.example', 0],
    ['https://2130706433/', '127.0.0.1', 4],
    ['https://0x7f.1/', '127.0.0.1', 4],
    ['https://0177.0.0.1/', '127.0.0.1', 4],
    ['https://１２７.１/', '127.0.0.1', 4],
    ['https://0/', '0.0.0.0', 4],
    ['https://[::FFFF:127.0.0.1]/', '::ffff:7f00:1', 6],
    ['https://[2001:DB8:0:0::1]/', '2001:db8::1', 6],
    ['https://127.0.0.1#@ok.example', '127.0.0.1', 4],
  ])('%j leads to %s', (url, host, family) => {
    expect(read(url)).toMatchObject({ host, family });
  });

  it.each(['https://a.example:443/', 'https://a.example:1024/', 'https://a.example:65535/'])(
    '%s has a port for the web',
    (url) => expect(read(url)).toMatchObject({ secure: true }),
  );

  it.each([
    ['http://a.example/', 'the URL is not https'],
    ['ftp://a.example/', 'the URL is not https'],
    ['file:///etc/passwd', 'the URL is not https'],
    ['gopher://a.example:7070/', 'the URL is not https'],
    ['blob:https://a.example/x', 'the URL is not https'],
    ['https://ok.example@127.0.0.1/', 'the URL has user info'],
    ['https://:secret@a.example/', 'the URL has user info'],
    ['https://a.example:22/', 'the port is not 443 or from 1024 on'],
    ['https://a.example:1023/', 'the port is not 443 or from 1024 on'],
    ['https://a.example:0/', 'the port is not 443 or from 1024 on'],
    ['https://./', 'the URL has no host'],
    ['https://', 'the URL cannot be read'],
    ['https://127.0.0.1.5/', 'the URL cannot be read'],
    ['https://999.0.0.1/', 'the URL cannot be read'],
    ['https://[::1%25lo]/', 'the URL cannot be read'],
    ['https://a b.example/', 'the URL cannot be read'],
    ['//a.example/', 'the URL cannot be read'],
    ['', 'the URL cannot be read'],
  ])('%j is refused: %s', (url, message) => {
    expect(refusalOf(url)).toMatchObject({ code: 'url_refused', message });
  });

  it('takes http where it is allowed, on its own port too', () => {
    expect(read('http://127.0.0.1:8080/', true)).toMatchObject({ secure: false, port: '8080' });
    expect(read('http://localhost/', true)).toMatchObject({ secure: false, port: '' });
    expect(() => read('http://127.0.0.1:22/', true)).toThrow('port');
    expect(() => read('ftp://127.0.0.1/', true)).toThrow('https');
  });
});
