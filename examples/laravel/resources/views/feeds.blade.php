<table>
  <tr><th>Feed<th>State<th>Progress<th>Last success<th>Next</tr>
  @foreach ($feeds as $feed)
  @php($model = $refreshd->get($feed->uid()))
  <tr>
    <td>{{ $feed->name }}
    <td>{{ $model?->state ?? 'not saved yet' }} {{ $model?->disabledReason }}
    <td>{{ $model?->status }} {{ $model?->progress ? "$model->progress %" : '' }}
    <td>{{ $model?->lastSuccessAt?->format('Y-m-d H:i') ?? 'never' }}
    <td>{{ $model?->refreshAt?->format('Y-m-d H:i') }} {{ $model?->refreshWhy }}
  </tr>
  @endforeach
</table>
