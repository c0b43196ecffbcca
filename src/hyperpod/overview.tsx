import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { AwsAge } from '../clusters/awsAge';
import { StaleNote } from '../clusters/staleNote';
import { ErrorMessage } from '../components/errorMessage';
import { StateChip } from '../components/stateChip';
import { momentText } from '../components/words';
import { GroupsTable } from './groupsTable';
import { ReachNote } from './reach';
import { Settings } from './settings';
import { IHyperpodDetail, LinkKind } from './types';
import { Watched } from './watched';
import { hyperpodStateText, imageStatusText, orchestratorText } from './words';

/**
 * What a HyperPod cluster is: its state, its instance groups, its settings, and where it is in AWS' web console.
 */
export function Overview(props: {
  cluster: Watched<IHyperpodDetail>;
  showMetrics: () => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { cluster, showMetrics, trans } = props;
  const { error, value } = cluster;
  return (
    <>
      {error && (
        <ErrorMessage
          error={error}
          trans={trans}
          retry={() => cluster.refresh()}
        />
      )}
      {value === null && !error && (
        <p className="jp-HyperPod-Message" role="status">
          {trans.__('Loading…')}
        </p>
      )}
      {value && (
        <>
          <div className="jp-HyperPod-Table-head">
            <StateChip
              state={value.state}
              text={hyperpodStateText(value.state, trans)}
              reason={value.reason}
              trans={trans}
            />
            <Button press={() => cluster.refresh()}>
              {trans.__('Refresh')}
            </Button>
            <Button press={showMetrics}>{trans.__('Metrics')}</Button>
          </div>
          <Detail detail={value} trans={trans} />
        </>
      )}
    </>
  );
}

function Button(props: {
  press: () => void;
  children: React.ReactNode;
}): JSX.Element {
  const { children, press } = props;
  return (
    <button type="button" className="jp-HyperPod-button" onClick={press}>
      {children}
    </button>
  );
}

interface IProps {
  detail: IHyperpodDetail;
  trans: TranslationBundle;
}

function Detail({ detail, trans }: IProps): JSX.Element {
  const { as_of: asOf, loading, notes, problem, reason } = detail;
  return (
    <>
      {asOf && problem && (
        <StaleNote asOf={asOf} problem={problem} isAws trans={trans} />
      )}
      {asOf && !problem && (
        <AwsAge asOf={asOf} isLoading={loading} trans={trans} />
      )}
      {reason && (
        <p className="jp-HyperPod-Table-note" role="note">
          {reason}
        </p>
      )}
      <Facts detail={detail} trans={trans} />
      {detail.reach && <ReachNote reach={detail.reach} trans={trans} />}
      <Links detail={detail} trans={trans} />
      <GroupsTable groups={detail.groups} trans={trans} />
      <Settings settings={detail.settings} trans={trans} />
      <Tags detail={detail} trans={trans} />
      {notes.map(note => (
        <p key={note} className="jp-HyperPod-Table-note" role="note">
          {note}
        </p>
      ))}
    </>
  );
}

function Facts({ detail, trans }: IProps): JSX.Element {
  const {
    image_status: imageStatus,
    mounted_here: mountedHere,
    nodes,
    target
  } = detail;
  const facts: [string, string][] = [
    [trans.__('Scheduler'), orchestratorText(detail.orchestrator, trans)],
    [
      trans.__('Nodes'),
      nodes === null || target === null
        ? ''
        : trans.__('%1 of %2', nodes, target)
    ],
    [trans.__('Configured as'), detail.configured_as.join(', ')],
    [trans.__('Mount path here'), mountedText(mountedHere, trans)],
    [
      trans.__('Software'),
      imageStatus === null ? '' : imageStatusText(imageStatus, trans)
    ],
    [trans.__('Created'), momentText(detail.created_at)],
    [trans.__('Region'), detail.region],
    [trans.__('ARN'), detail.arn],
    [trans.__('Log group'), detail.log_group]
  ];
  return (
    <dl className="jp-HyperPod-facts">
      {facts
        .filter(([, value]) => value !== '')
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

function mountedText(
  places: readonly string[] | null,
  trans: TranslationBundle
): string {
  if (places === null) {
    return '';
  }
  return places.length > 0 ? places.join(', ') : trans.__('no');
}

function Links({ detail, trans }: IProps): JSX.Element | null {
  const labels: Readonly<Record<LinkKind, string>> = {
    cluster: trans.__('Cluster in the SageMaker console'),
    logs: trans.__('Logs in the CloudWatch console'),
    eks: trans.__('EKS cluster in its console')
  };
  const kinds: readonly LinkKind[] = ['cluster', 'logs', 'eks'];
  const shown = kinds.flatMap(kind => {
    const href = detail.links[kind];
    return href === null ? [] : [{ kind, href }];
  });
  return shown.length === 0 ? null : (
    <ul className="jp-HyperPod-Links" aria-label={trans.__('AWS console')}>
      {shown.map(({ href, kind }) => (
        <li key={kind}>
          <a href={href} target="_blank" rel="noopener noreferrer">
            {labels[kind]}
          </a>
        </li>
      ))}
    </ul>
  );
}

function Tags({ detail, trans }: IProps): JSX.Element | null {
  const { tags } = detail;
  return tags === null || tags.length === 0 ? null : (
    <section aria-label={trans.__('Tags')}>
      <h2>{trans.__('Tags')}</h2>
      <dl className="jp-HyperPod-facts">
        {tags.map(({ key, value }) => (
          <div key={key}>
            <dt>{key}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
