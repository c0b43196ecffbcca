import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { Bar } from './bar';
import { IDevice } from './types';

/** More devices of one kind are shown as text only. */
const MOST_SQUARES = 32;

/**
 * A node's GPUs by type, each of them a square that says whether jobs have it, some have parts of it, or it is free.
 */
export function DeviceSquares(props: {
  devices: readonly IDevice[];
  /** Whether new jobs may start on the node. */
  usable: boolean;
  trans: TranslationBundle;
}): JSX.Element {
  const { trans, usable } = props;
  const shown = props.devices.filter(device => device.accelerator);
  return (
    <span className="jp-HyperPod-Devices">
      {shown.map(device => (
        <span
          key={deviceName(device)}
          className="jp-HyperPod-Devices-kind"
          role="img"
          aria-label={deviceText(device, trans)}
          title={deviceText(device, trans)}
        >
          <Picture device={device} usable={usable} />
          <span className="jp-HyperPod-Devices-name">
            {trans.__(
              '%1: %2 of %3',
              deviceName(device),
              device.free,
              device.total
            )}
          </span>
        </span>
      ))}
    </span>
  );
}

/** A square for each device or, where a square could not say which one it is, a bar. */
function Picture(props: { device: IDevice; usable: boolean }): JSX.Element {
  const { device, usable } = props;
  const numbers = numbersOf(device);
  if (numbers.length === 0) {
    return (
      <Bar
        parts={[{ use: 'used', amount: device.used }]}
        total={device.total}
        isOff={!usable}
      />
    );
  }
  return (
    <>
      {numbers.map(number => (
        <span
          key={number}
          className="jp-HyperPod-Devices-one"
          data-use={useOf(device, number, usable)}
        />
      ))}
    </>
  );
}

/** How many of which devices are free, of those that compute. */
export function devicesText(
  devices: readonly IDevice[],
  trans: TranslationBundle
): string {
  return devices
    .filter(device => device.accelerator)
    .map(device =>
      trans.__('%1: %2 of %3', deviceName(device), device.free, device.total)
    )
    .join(', ');
}

/** What else there is of a kind that a cluster counts, as of 5 licenses. */
export function othersText(
  devices: readonly IDevice[],
  trans: TranslationBundle
): string {
  return devices
    .filter(device => !device.accelerator)
    .map(device =>
      trans.__('%1: %2 of %3', fullName(device), device.free, device.total)
    )
    .join(', ');
}

/** What a job has or wants. */
export function amountsText(devices: readonly IDevice[]): string {
  return devices
    .map(device =>
      device.accelerator
        ? `${device.total} × ${deviceName(device)}`
        : `${device.total} × ${fullName(device)}`
    )
    .join(', ');
}

function deviceText(device: IDevice, trans: TranslationBundle): string {
  const parts = [
    trans.__('%1: %2 of %3 free', deviceName(device), device.free, device.total)
  ];
  if (device.used_at.length > 0) {
    parts.push(trans.__('in use: %1', device.used_at.join(', ')));
  } else if (device.used > 0) {
    parts.push(trans.__('%1 in use', device.used));
  }
  if (device.shared_at.length > 0) {
    parts.push(trans.__('partly in use: %1', device.shared_at.join(', ')));
  }
  return parts.join('; ');
}

/** The numbers of a kind's devices; none where a square could not say which one it is. */
function numbersOf(device: IDevice): number[] {
  const { first, total, used, used_at: usedAt } = device;
  const known = first !== null && (used === 0 || usedAt.length > 0);
  return known && total <= MOST_SQUARES
    ? Array.from({ length: total }, (_, at) => first + at)
    : [];
}

function useOf(device: IDevice, number: number, usable: boolean): string {
  if (device.used_at.includes(number)) {
    return 'used';
  }
  if (device.shared_at.includes(number)) {
    return 'shared';
  }
  return usable ? 'free' : 'off';
}

function deviceName({ name, type }: IDevice): string {
  return type === null ? (name === 'gpu' ? 'GPU' : name) : gpuName(type);
}

/** A GPU's type as people write it: H100 for Slurm's h100; a MIG profile stays. */
export function gpuName(type: string): string {
  return /^[a-z]+\d+[a-z]*$/.test(type) ? type.toUpperCase() : type;
}

function fullName(device: IDevice): string {
  return device.type === null ? device.name : `${device.name}:${device.type}`;
}
