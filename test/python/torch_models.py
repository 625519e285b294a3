"""Models of transformers, torchvision and timm, as they are, at small sizes: name: (library, function of it that gives the model, loss
and a function that makes a batch)."""

import importlib

import pytest
import torch

MODELS = {}
LM = dict(vocab_size=100, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
          max_position_embeddings=32, pad_token_id=0, bos_token_id=1, eos_token_id=2)
ENCODER = dict(vocab_size=100, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=32,
               hidden_dropout_prob=0, attention_probs_dropout_prob=0)
SEQ2SEQ = dict(vocab_size=100, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
               encoder_ffn_dim=64, decoder_ffn_dim=64, dropout=0, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)


def make(name):
    """The model, its loss, and ten batches."""
    library, build = MODELS[name]
    pytest.importorskip(library)
    torch.manual_seed(0)
    model, loss, batch = build(importlib.import_module(library))
    if hasattr(model, "config"):
        model.config._experts_implementation = "eager"  # the others are for single and half precision alone
    return model.train(), loss, [batch() for _ in range(10)]


def tokens(length=16):
    return torch.randint(3, 100, (4, length))


def image(size=32):
    return torch.randn(4, 3, size, size)


def causal():
    ids = tokens()
    return {"input_ids": ids, "labels": ids}


def add(name, kind, config, batch=causal, **options):
    """A model of transformers by its configuration."""
    MODELS[name] = "transformers", lambda t: (getattr(t, kind)(getattr(t, config)(**options)), None, batch)


def add_vision(name, library, build, size=64):
    def batch():
        return torch.randn(8, 3, size, size), torch.randint(0, 10, (8,))

    MODELS[name] = library, lambda module: (build(module), torch.nn.functional.cross_entropy, batch)


add("gpt2", "GPT2LMHeadModel", "GPT2Config", n_layer=2, n_head=2, n_embd=32, vocab_size=100, n_positions=16, bos_token_id=1, eos_token_id=1,
    resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
add("llama", "LlamaForCausalLM", "LlamaConfig", **LM)
add("qwen2", "Qwen2ForCausalLM", "Qwen2Config", **LM)
add("qwen3", "Qwen3ForCausalLM", "Qwen3Config", head_dim=8, **LM)
add("mistral", "MistralForCausalLM", "MistralConfig", **LM)
add("gemma", "GemmaForCausalLM", "GemmaConfig", head_dim=8, **LM)
add("gemma3", "Gemma3ForCausalLM", "Gemma3TextConfig", head_dim=8, **LM)
add("phi3", "Phi3ForCausalLM", "Phi3Config", **LM)
add("gptneox", "GPTNeoXForCausalLM", "GPTNeoXConfig", **LM)
add("opt", "OPTForCausalLM", "OPTConfig", vocab_size=100, hidden_size=32, ffn_dim=64, num_hidden_layers=2, num_attention_heads=4,
    max_position_embeddings=32, word_embed_proj_dim=32, dropout=0, pad_token_id=0, bos_token_id=1, eos_token_id=2)
add("mamba", "MambaForCausalLM", "MambaConfig", vocab_size=100, hidden_size=32, state_size=4, num_hidden_layers=2, pad_token_id=0,
    bos_token_id=1, eos_token_id=2)
add("mixtral", "MixtralForCausalLM", "MixtralConfig", num_local_experts=4, num_experts_per_tok=2, **LM)
add("qwen3_moe", "Qwen3MoeForCausalLM", "Qwen3MoeConfig", head_dim=8, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32, **LM)
add("deepseek_v3", "DeepseekV3ForCausalLM", "DeepseekV3Config", n_routed_experts=4, num_experts_per_tok=2, n_group=2, topk_group=1,
    moe_intermediate_size=32, kv_lora_rank=16, q_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=8,
    first_k_dense_replace=1, **LM | {"num_key_value_heads": 4})
add("bert", "BertForMaskedLM", "BertConfig", lambda: causal() | {"attention_mask": torch.ones(4, 16, dtype=torch.long)}, **ENCODER)
add("roberta", "RobertaForSequenceClassification", "RobertaConfig",
    lambda: {"input_ids": tokens(), "labels": torch.randint(0, 2, (4,))}, **ENCODER)
add("t5", "T5ForConditionalGeneration", "T5Config", lambda: {"input_ids": tokens(), "labels": tokens(8)}, vocab_size=100, d_model=32,
    d_ff=64, d_kv=8, num_layers=2, num_heads=4, dropout_rate=0, decoder_start_token_id=0)
add("bart", "BartForConditionalGeneration", "BartConfig", lambda: {"input_ids": tokens(), "labels": tokens(8)}, max_position_embeddings=32,
    **SEQ2SEQ)
add("whisper", "WhisperForConditionalGeneration", "WhisperConfig", lambda: {"input_features": torch.randn(4, 8, 32), "labels": tokens(8)},
    num_mel_bins=8, max_source_positions=16, max_target_positions=16, **SEQ2SEQ)
add("vit", "ViTForImageClassification", "ViTConfig", lambda: {"pixel_values": image(), "labels": torch.randint(0, 10, (4,))},
    **{key: value for key, value in ENCODER.items() if key not in ("vocab_size", "max_position_embeddings")}, image_size=32, patch_size=8,
    num_labels=10)
add("clip", "CLIPModel", "CLIPConfig", lambda: {"input_ids": tokens(), "pixel_values": image(), "return_loss": True}, projection_dim=16,
    text_config={key: value for key, value in LM.items() if key != "num_key_value_heads"},
    vision_config=dict(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, image_size=32, patch_size=8))
add_vision("resnet", "torchvision", lambda tv: tv.models.resnet18(num_classes=10))
add_vision("mobilenet", "torchvision", lambda tv: tv.models.mobilenet_v2(num_classes=10, dropout=0.0))
add_vision("efficientnet", "torchvision", lambda tv: tv.models.efficientnet_b0(num_classes=10, dropout=0.0, stochastic_depth_prob=0.0))
add_vision("densenet", "torchvision", lambda tv: tv.models.DenseNet(growth_rate=8, block_config=(2, 2), num_init_features=16,
                                                                   num_classes=10))
add_vision("swin", "torchvision", lambda tv: tv.models.SwinTransformer([4, 4], 16, [2, 2], [2, 4], [4, 4], stochastic_depth_prob=0.0,
                                                                      num_classes=10), 32)
add_vision("vision_transformer", "torchvision", lambda tv: tv.models.VisionTransformer(32, 8, 2, 4, 32, 64, num_classes=10), 32)
add_vision("convnext", "timm", lambda timm: timm.create_model("convnext_atto", num_classes=10))
add_vision("mixer", "timm", lambda timm: timm.create_model("mixer_s32_224", img_size=64, num_classes=10))
add_vision("regnet", "timm", lambda timm: timm.create_model("regnetx_002", num_classes=10))
