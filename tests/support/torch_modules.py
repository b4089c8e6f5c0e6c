"""Modules as users of PyTorch write them: each a module in evaluation mode and what it is called with."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Made = tuple[nn.Module, tuple[Tensor, ...]]
MODULES: dict[str, Callable[[], Made]] = {}


def module(make: Callable[[], Made]) -> Callable[[], Made]:
    MODULES[make.__name__] = make
    return make


class Of(nn.Module):
    """Some layers, and a function of them and of the inputs."""

    def __init__(self, function: Callable[..., Any], **layers: nn.Module) -> None:
        super().__init__()
        self.function = function
        for name, layer in layers.items():
            self.add_module(name, layer)

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(self, *inputs)


def conv(into: int, out: int, size: int = 3, stride: int = 1, groups: int = 1, act: Any = nn.ReLU) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(into, out, size, stride, size // 2, groups=groups, bias=False),
        nn.BatchNorm2d(out),
        *([act()] if act else []),
    )


@module
def recurrent_both_ways() -> Made:
    def run(m: Any, x: Tensor) -> Tensor:
        y, last = m.gru(x)
        z, (h, _) = m.lstm(y)
        return m.out(torch.cat([z[:, -1], h[-1], last[0]], -1))

    layers = {
        "gru": nn.GRU(6, 8, 2, batch_first=True, bidirectional=True),
        "lstm": nn.LSTM(16, 5, batch_first=True, bidirectional=True),
        "out": nn.Linear(10 + 5 + 8, 3),
    }
    return Of(run, **layers), (torch.randn(1, 11, 6),)


@module
def cells_in_a_loop() -> Made:
    def run(m: Any, x: Tensor, h: Tensor, c: Tensor) -> Any:
        rows = []
        for step in range(x.shape[1]):
            h, c = m.cell(x[:, step], (h, c))
            rows.append(m.out(h))
        return torch.stack(rows, 1), h, c

    return (
        Of(run, cell=nn.LSTMCell(4, 7), out=nn.Linear(7, 2)),
        (torch.randn(1, 5, 4), torch.randn(1, 7), torch.randn(1, 7)),
    )


@module
def projected_lstm() -> Made:
    def run(m: Any, x: Tensor) -> Tensor:
        return m.out(m.lstm(x)[0].mean(1))

    return Of(run, lstm=nn.LSTM(5, 9, batch_first=True, proj_size=4), out=nn.Linear(4, 2)), (torch.randn(1, 8, 5),)


@module
def rnn_with_a_first_state() -> Made:
    def run(m: Any, x: Tensor, h: Tensor) -> Any:
        y, last = m.gru(x, h)
        return m.out(F.elu(y)), last

    return Of(run, gru=nn.GRU(4, 6), out=nn.Linear(6, 3)), (torch.randn(7, 1, 4), torch.randn(1, 1, 6))


@module
def hard_swish_depthwise() -> Made:
    class Gate(nn.Module):
        def __init__(self, count: int) -> None:
            super().__init__()
            self.pool, self.act = nn.AdaptiveAvgPool2d(1), nn.Hardsigmoid()
            self.down, self.up = nn.Conv2d(count, count // 4, 1), nn.Conv2d(count // 4, count, 1)

        def forward(self, x: Tensor) -> Tensor:
            return x * self.act(self.up(F.relu(self.down(self.pool(x)))))

    return nn.Sequential(
        conv(3, 16, 3, 2, act=nn.Hardswish),
        conv(16, 16, 5, 2, 16, nn.Hardswish),
        Gate(16),
        conv(16, 24, 1, act=None),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Hardswish(),
        nn.Dropout(0.2),
        nn.Linear(24, 5),
    ), (torch.randn(1, 3, 35, 33),)


@module
def encoder_layers() -> Made:
    def run(m: Any, x: Tensor) -> Tensor:
        lost = torch.arange(9) >= 7
        return m.out(m.second(m.first(x), src_key_padding_mask=lost[None])[:, :7].mean(1))

    return Of(
        run,
        first=nn.TransformerEncoderLayer(16, 4, 32, batch_first=True),
        second=nn.TransformerEncoderLayer(16, 2, 24, activation="gelu", batch_first=True, norm_first=True),
        out=nn.Linear(16, 3),
    ), (torch.randn(1, 9, 16),)


@module
def decoder_layer() -> Made:
    def run(m: Any, x: Tensor, memory: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return m.layer(x, memory, tgt_mask=mask, tgt_is_causal=True)

    layer = nn.TransformerDecoderLayer(12, 3, 20, batch_first=True)
    return Of(run, layer=layer), (torch.randn(1, 6, 12), torch.randn(1, 8, 12))


@module
def multi_head_with_weights() -> Made:
    def run(m: Any, q: Tensor, k: Tensor) -> Any:
        return m.attention(q, k, k, need_weights=True, average_attn_weights=False)

    attention = nn.MultiheadAttention(12, 3, kdim=10, vdim=10, batch_first=True, add_bias_kv=False)
    return Of(run, attention=attention), (torch.randn(1, 4, 12), torch.randn(1, 6, 10))


@module
def u_net_of_groups() -> Made:
    def run(m: Any, x: Tensor) -> Tensor:
        a = m.a(x)
        b = m.b(F.max_pool2d(a, 2))
        c = m.c(F.avg_pool2d(b, 2))
        y = m.d(torch.cat([m.up(c), b], 1))
        return torch.sigmoid(m.out(torch.cat([m.last(y), a], 1)))

    def block(into: int, out: int) -> nn.Sequential:
        return nn.Sequential(nn.Conv2d(into, out, 3, padding=1), nn.GroupNorm(4, out), nn.SiLU())

    return Of(
        run,
        a=block(2, 8),
        b=block(8, 16),
        c=block(16, 16),
        up=nn.ConvTranspose2d(16, 16, 3, 2, 1, output_padding=1),
        d=block(32, 12),
        last=nn.ConvTranspose2d(12, 8, 2, 2),
        out=nn.Conv2d(16, 1, 1),
    ), (torch.randn(1, 2, 20, 24),)


@module
def pixel_shuffles() -> Made:
    return nn.Sequential(
        nn.PixelUnshuffle(2),
        nn.Conv2d(12, 16, 3, padding=1, padding_mode="reflect"),
        nn.PReLU(16),
        nn.Conv2d(16, 16, 3, padding=1, padding_mode="circular"),
        nn.GELU(approximate="tanh"),
        nn.Conv2d(16, 27, 3, padding="same", dilation=2),
        nn.PixelShuffle(3),
    ), (torch.randn(1, 3, 12, 16),)


@module
def adaptive_pools() -> Made:
    def run(m: Any, x: Tensor) -> Any:
        y = m.conv(x)
        return (
            F.adaptive_avg_pool2d(y, (2, 3)),
            F.adaptive_max_pool2d(y, (3, 1)),
            F.adaptive_avg_pool1d(y.flatten(2), 4),
            F.adaptive_avg_pool2d(y, (None, 1)),
            F.avg_pool2d(y, 3, 2, 1, ceil_mode=True, count_include_pad=False),
            F.lp_pool2d(y, 2.0, 3, 2),
        )

    return Of(run, conv=nn.Conv2d(2, 4, 3)), (torch.randn(1, 2, 14, 20),)


@module
def attention_by_einsum() -> Made:
    def run(m: Any, x: Tensor) -> Tensor:
        b, t, d = x.shape
        q, k, v = (part.view(b, t, 3, d // 3) for part in m.qkv(x).split(d, -1))
        scores = torch.einsum("bihd,bjhd->bhij", q, k) / math.sqrt(d // 3)
        scores = scores.masked_fill(torch.ones(t, t, dtype=torch.bool).triu(1), float("-inf"))
        return m.out(torch.einsum("bhij,bjhd->bihd", scores.softmax(-1), v).reshape(b, t, d))

    return Of(run, qkv=nn.Linear(12, 36), out=nn.Linear(12, 12, bias=False)), (torch.randn(1, 7, 12),)


@module
def llama_block() -> Made:
    def turned(x: Tensor) -> Tensor:
        half = x.shape[-1] // 2
        angles = torch.arange(x.shape[-2])[:, None] * 10000.0 ** (-torch.arange(half) / half)
        cos, sin = (torch.cat([f(angles)] * 2, -1) for f in (torch.cos, torch.sin))
        return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin

    def run(m: Any, ids: Tensor) -> Tensor:
        x = m.embed(ids)
        y = m.first(x)
        b, t, d = y.shape
        q, k, v = (layer(y).view(b, t, -1, 6).transpose(1, 2) for layer in (m.q, m.k, m.v))
        k, v = (part.repeat_interleave(2, 1) for part in (k, v))
        z = F.scaled_dot_product_attention(turned(q), turned(k), v, is_causal=True)
        x = x + m.o(z.transpose(1, 2).reshape(b, t, d))
        y = m.second(x)
        return (x + m.down(F.silu(m.gate(y)) * m.up(y))) @ m.embed.weight.T

    return Of(
        run,
        embed=nn.Embedding(40, 24),
        first=nn.RMSNorm(24),
        second=nn.RMSNorm(24),
        q=nn.Linear(24, 24, False),
        k=nn.Linear(24, 12, False),
        v=nn.Linear(24, 12, False),
        o=nn.Linear(24, 24, False),
        gate=nn.Linear(24, 32, False),
        up=nn.Linear(24, 32, False),
        down=nn.Linear(32, 24, False),
    ), (torch.randint(0, 40, (1, 9)),)


@module
def mixer() -> Made:
    def run(m: Any, x: Tensor) -> Tensor:
        y = m.patches(x).flatten(2).mT
        y = y + m.tokens(m.first(y).mT).mT
        y = y + m.channels(m.second(y))
        return m.out(y.mean(1))

    return Of(
        run,
        patches=nn.Conv2d(3, 20, 4, 4),
        first=nn.LayerNorm(20),
        second=nn.LayerNorm(20),
        tokens=nn.Sequential(nn.Linear(16, 24), nn.GELU(), nn.Linear(24, 16)),
        channels=nn.Sequential(nn.Linear(20, 30), nn.GELU(), nn.Linear(30, 20)),
        out=nn.Linear(20, 4),
    ), (torch.randn(1, 3, 16, 16),)


@module
def pyramid() -> Made:
    """Features of three sizes, joined from the top, with a head that they share."""

    def run(m: Any, x: Tensor) -> Any:
        a = m.a(x)
        b = m.b(a)
        c = m.c(b)
        q = m.side2(c)
        p = m.side1(b) + F.interpolate(q, size=b.shape[-2:], mode="nearest")
        o = m.side0(a) + F.interpolate(p, scale_factor=2.0, mode="bilinear", align_corners=False)
        return tuple(m.head(y).permute(0, 2, 3, 1).reshape(1, -1, 5) for y in (o, p, q))

    return Of(
        run,
        a=conv(3, 8, 3, 2),
        b=conv(8, 12, 3, 2),
        c=conv(12, 16, 3, 2),
        side0=nn.Conv2d(8, 8, 1),
        side1=nn.Conv2d(12, 8, 1),
        side2=nn.Conv2d(16, 8, 1),
        head=nn.Conv2d(8, 10, 3, padding=1),
    ), (torch.randn(1, 3, 32, 32),)


@module
def blocks_of_many_kinds() -> Made:
    """Groups, dense connections, branches, split and shuffled channels, attention over channels and places."""

    def run(m: Any, x: Tensor) -> Tensor:
        x = m.stem(x)
        x = F.relu(x + m.grouped(x))
        x = torch.cat([x, m.dense(x)], 1)
        x = torch.cat([m.one(x), m.three(x), F.avg_pool2d(x, 3, 1, 1)], 1)
        kept, moved = x.chunk(2, 1)
        x = torch.stack([kept, m.moved(moved)], 2).flatten(1, 2)
        x = x * torch.sigmoid(m.places(torch.cat([x.amax(1, True), x.mean(1, True)], 1)))
        return m.out(torch.cat([x.mean((2, 3)), x.amax((2, 3))], 1))

    return Of(
        run,
        stem=nn.Sequential(conv(3, 16, 7, 2), nn.MaxPool2d(3, 2, 1)),
        grouped=nn.Sequential(conv(16, 16, 1), conv(16, 16, 3, groups=4), conv(16, 16, 1, act=None)),
        dense=nn.Sequential(nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 8, 3, padding=1, bias=False)),
        one=conv(24, 8, 1),
        three=nn.Sequential(
            conv(24, 8, 1), nn.Conv2d(8, 8, (1, 3), padding=(0, 1)), nn.Conv2d(8, 8, (3, 1), padding=(1, 0))
        ),
        moved=conv(20, 20, 3, groups=20, act=nn.SiLU),
        places=nn.Conv2d(2, 1, 7, padding=3, bias=False),
        out=nn.Linear(80, 6),
    ), (torch.randn(1, 3, 40, 40),)


@module
def temporal_convolutions() -> Made:
    class Step(nn.Module):
        def __init__(self, into: int, out: int, dilation: int) -> None:
            super().__init__()
            self.pad = 2 * dilation
            self.conv = nn.utils.parametrizations.weight_norm(nn.Conv1d(into, 2 * out, 3, dilation=dilation))
            self.norm = nn.InstanceNorm1d(out, affine=True)
            self.side = nn.Conv1d(into, out, 1) if into != out else nn.Identity()

        def forward(self, x: Tensor) -> Tensor:
            return self.norm(F.glu(self.conv(F.pad(x, (self.pad, 0))), 1)) + self.side(x)

    return nn.Sequential(
        Step(3, 8, 1), Step(8, 8, 2), Step(8, 8, 4), nn.AvgPool1d(4), nn.Flatten(), nn.LazyLinear(5), nn.LogSoftmax(-1)
    ), (torch.randn(1, 3, 36),)


@module
def tables() -> Made:
    def run(m: Any, ids: Tensor, kinds: Tensor) -> Tensor:
        places = torch.arange(ids.shape[1])
        x = m.words(ids) * math.sqrt(16) + m.places(places) + m.kinds(kinds).unsqueeze(1)
        weights = torch.softmax(m.score(x).squeeze(-1), -1)
        return m.out(torch.cat([(x * weights[..., None]).sum(1), x.max(1).values, x[:, 0]], -1))

    return Of(
        run,
        words=nn.Embedding(50, 16, padding_idx=0),
        places=nn.Embedding(20, 16),
        kinds=nn.Embedding(3, 16),
        score=nn.Linear(16, 1),
        out=nn.Linear(48, 4),
    ), (torch.randint(0, 50, (1, 12)), torch.randint(0, 3, (1,)))


@module
def sizes_by_all_modes() -> Made:
    def run(m: Any, x: Tensor) -> Any:
        y = m.conv(x)
        return (
            F.interpolate(y, (11, 7), mode="nearest-exact"),
            F.interpolate(y, (5, 12), mode="area"),
            F.interpolate(y, scale_factor=(1.5, 2.0), mode="bicubic", align_corners=False),
            F.interpolate(y, (13, 17), mode="bicubic", align_corners=True),
            F.interpolate(y, scale_factor=0.5, mode="bilinear", align_corners=False, recompute_scale_factor=True),
            F.interpolate(y.flatten(2), 30, mode="linear", align_corners=True),
            nn.UpsamplingBilinear2d(scale_factor=2)(y),
        )

    return Of(run, conv=nn.Conv2d(2, 3, 3, padding=1)), (torch.randn(1, 2, 8, 10),)


@module
def three_axes() -> Made:
    return nn.Sequential(
        nn.Conv3d(1, 4, 3, padding=1),
        nn.InstanceNorm3d(4),
        nn.LeakyReLU(0.1),
        nn.AvgPool3d(2),
        nn.Conv3d(4, 8, (1, 3, 3), stride=(1, 2, 2)),
        nn.AdaptiveMaxPool3d(1),
        nn.Flatten(),
        nn.Linear(8, 3),
    ), (torch.randn(1, 1, 6, 12, 12),)


@module
def learned_spectrum() -> Made:
    def run(m: Any, x: Tensor) -> Tensor:
        frames = x.unfold(-1, 32, 16) * torch.hann_window(32)
        power = m.real(frames).pow(2) + m.imaginary(frames).pow(2)
        y = torch.log(torch.clamp(m.bands(power), min=1e-5))
        y = (y - y.mean(1, keepdim=True)) / (y.std(1, keepdim=True) + 1e-5)
        return m.out(m.conv(y.transpose(1, 2)).amax(-1))

    return Of(
        run,
        real=nn.Linear(32, 17, False),
        imaginary=nn.Linear(32, 17, False),
        bands=nn.Linear(17, 8, False),
        conv=nn.Sequential(nn.Conv1d(8, 12, 3), nn.ReLU6()),
        out=nn.Linear(12, 4),
    ), (torch.randn(1, 256),)


@module
def log_mel() -> Made:
    def run(m: Any, x: Tensor) -> Tensor:
        z = torch.stft(x, 64, 16, 50, torch.hann_window(50), return_complex=False)
        return m.out(torch.log(z.pow(2).sum(-1).transpose(1, 2) @ m.bands.weight.abs().T + 1e-3))

    return Of(run, bands=nn.Linear(33, 10), out=nn.Linear(10, 4)), (torch.randn(1, 400),)


@module
def masked_spectrum() -> Made:
    """Noise suppression: a mask over a spectrum, and back to sound by overlapping frames."""

    def run(m: Any, x: Tensor) -> Any:
        window = torch.hann_window(32)
        z = torch.stft(x, 32, 8, window=window, return_complex=True)
        z = z * torch.sigmoid(m.mask(z.abs().transpose(1, 2))).transpose(1, 2)
        tapped = torch.fft.irfft(torch.fft.rfft(x, 400) * torch.fft.rfft(m.taps.weight[0], 400), 400)
        return torch.istft(z, 32, 8, window=window), tapped

    return Of(run, mask=nn.Linear(17, 17), taps=nn.Linear(9, 1)), (torch.randn(1, 320),)


@module
def moved_images() -> Made:
    """A spatial transformer, patches put back, volumes made larger, an element written."""

    def run(m: Any, x: Tensor) -> Any:
        theta = m.theta(x.flatten(1)).view(1, 2, 3)
        y = F.grid_sample(x, F.affine_grid(theta, [1, 2, 6, 7], align_corners=False), align_corners=False)
        z = F.fold(F.unfold(x, 3, padding=1) * m.scale.weight, (8, 8), 3, padding=1)
        marked = torch.zeros(1, 8).scatter(1, x[:, 0, 0].argmax(1, keepdim=True), 1.0)
        return y, z, m.up(x[:, :, None]), marked

    layers = {"theta": nn.Linear(128, 6), "scale": nn.Linear(64, 18), "up": nn.ConvTranspose3d(2, 4, 3, 2, 1, groups=2)}
    return Of(run, **layers), (torch.randn(1, 2, 8, 8),)


@module
def picking() -> Made:
    def run(m: Any, x: Tensor) -> Any:
        y = m.layer(x)
        best = y.topk(3, dim=-1, largest=False)
        order = y.argsort(-1, descending=True)
        rows = y.index_select(1, torch.tensor([2, 0]))
        return (
            best.values,
            best.indices,
            torch.gather(y, -1, order),
            rows,
            y[:, [0, 3], ::2],
            y[..., -1:].expand(-1, -1, 3),
            torch.where(y > y.mean(), y, torch.zeros_like(y)),
            y.cumsum(1).clamp_max(2.0),
            F.one_hot(y.argmax(-1), 8).float(),
            (y.sign() * y.abs().log1p()).roll(1, 2),
            torch.maximum(y, y.flip(1)).logsumexp(-1),
            y.unflatten(-1, (2, 4)).movedim(2, 1),
        )

    return Of(run, layer=nn.Linear(6, 8)), (torch.randn(1, 5, 6),)


@module
def vector_quantizer() -> Made:
    def run(m: Any, x: Tensor) -> Any:
        z = m.down(x).permute(0, 2, 3, 1)
        codes = m.codes.weight
        far = (z * z).sum(-1, keepdim=True) - 2 * z @ codes.T + (codes * codes).sum(-1)
        nearest = far.argmin(-1)
        return m.up(m.codes(nearest).permute(0, 3, 1, 2)), nearest

    return Of(run, down=nn.Conv2d(1, 6, 4, 4), codes=nn.Embedding(10, 6), up=nn.ConvTranspose2d(6, 1, 4, 4)), (
        torch.randn(1, 1, 12, 16),
    )
